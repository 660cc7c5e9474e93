extension TargetURI {
    /// The text of a reference whose bytes may be of any charset; nothing of it is lost.
    ///
    /// - Parameter bytes: the reference; where it is not UTF-8, each byte outside ASCII is
    ///   percent-encoded, as browsers do.
    /// - Returns: the text.
    package static func reference(_ bytes: some Collection<UInt8>) -> String {
        String(validating: bytes, as: UTF8.self)
            ?? bytes.reduce(into: "") { text, byte in
                text += byte < 0x80 ? String(UnicodeScalar(byte)) : encoded(byte)
            }
    }

    /// Resolves a reference, such as the value of `Location`, against this URI (RFC 3986 §5.2).
    ///
    /// The fragment is dropped. Dot segments of the reference are removed; those of an unchanged
    /// base stay; an escaped dot (`%2e`) is no dot. A backslash is escaped as a character of the
    /// path and never a slash, so that `/\evil.example` stays with this origin. Userinfo is kept if
    /// the reference has no authority.
    ///
    /// - Throws: ``TargetURIError`` where the result is not an `http` or `https` URI.
    public func resolving(reference: String) throws(TargetURIError) -> TargetURI {
        let reference = reference.utf8.prefix { $0 != UInt8(ascii: "#") }
        if Self.hasScheme(reference) {
            return try TargetURI(String(decoding: reference, as: UTF8.self)).removingDotSegments()
        }
        if reference.starts(with: "//".utf8) {
            let text = "\(scheme.rawValue):" + String(decoding: reference, as: UTF8.self)
            return try TargetURI(text).removingDotSegments()
        }
        let pathPart = reference.prefix { $0 != UInt8(ascii: "?") }
        let query = String(decoding: reference.dropFirst(pathPart.count), as: UTF8.self)
        let resolved = try TargetURI("\(origin)\(merged(pathPart))\(query)")
        return TargetURI(
            origin: origin,
            path: resolved.path,
            // RFC 3986 §5.2.2: only a reference without path and query keeps the query of the base.
            query: reference.isEmpty ? self.query : resolved.query,
            userinfo: userinfo
        )
    }

    /// The path of a relative reference with `path` (RFC 3986 §5.2.2, §5.2.3).
    private func merged(_ path: Substring.UTF8View) -> String {
        guard let first = path.first else { return self.path }
        let text = String(decoding: path, as: UTF8.self)
        guard first != UInt8(ascii: "/") else { return Self.removingDotSegments(text) }
        // Byte-wise, because a slash and a combining mark form one character.
        let tail = self.path.utf8.reversed().prefix { $0 != UInt8(ascii: "/") }
        let folder = String(decoding: self.path.utf8.dropLast(tail.count), as: UTF8.self)
        return Self.removingDotSegments(folder + text)
    }

    private func removingDotSegments() -> TargetURI {
        TargetURI(
            origin: origin,
            path: Self.removingDotSegments(path),
            query: query,
            userinfo: userinfo
        )
    }

    /// Removes dot segments of a path that starts with a slash (RFC 3986 §5.2.4).
    private static func removingDotSegments(_ path: String) -> String {
        let slash = UInt8(ascii: "/")
        let segments = path.utf8.split(separator: slash, omittingEmptySubsequences: false)
        var kept: [Substring.UTF8View] = []
        for segment in segments.dropFirst() {
            if segment.elementsEqual("..".utf8) {
                _ = kept.popLast()
            } else if !segment.elementsEqual(".".utf8) {
                kept.append(segment)
            }
        }
        // A trailing dot segment names a folder: its slash stays.
        if let last = segments.last, last.elementsEqual(".".utf8) || last.elementsEqual("..".utf8) {
            kept.append(path.utf8[path.utf8.endIndex...])
        }
        let joined = kept.map { String(decoding: $0, as: UTF8.self) }.joined(separator: "/")
        return "/" + joined
    }

    /// Whether a scheme and a colon come before any other delimiter (RFC 3986 §4.1).
    private static func hasScheme(_ reference: Substring.UTF8View) -> Bool {
        let scheme = reference.prefix { byte in
            byte.isLetter || byte.isDigit || byte == UInt8(ascii: "+")
                || byte == UInt8(ascii: "-") || byte == UInt8(ascii: ".")
        }
        guard let first = scheme.first, first.isLetter else { return false }
        return scheme.endIndex < reference.endIndex
            && reference[scheme.endIndex] == UInt8(ascii: ":")
    }
}
