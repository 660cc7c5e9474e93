extension TargetURI {
    /// Parses an absolute `http` or `https` URI; the fragment is dropped (RFC 9110 §7.1).
    ///
    /// - Throws: ``TargetURIError`` for other schemes, an empty or non-ASCII host, a port that is
    ///   no number from 1 to 65535, or a control character anywhere.
    public init(_ text: String) throws(TargetURIError) {
        let text = text.utf8.prefix { $0 != UInt8(ascii: "#") }
        // CR or LF would begin another line of the request.
        guard !text.contains(where: { $0 < 0x20 || $0 == 0x7F }) else {
            throw TargetURIError("it contains a control character")
        }
        guard let colon = text.firstIndex(of: UInt8(ascii: ":")) else {
            throw TargetURIError("it has no scheme; write http:// or https:// in front")
        }
        let schemeText = String(decoding: text[..<colon], as: UTF8.self).lowercased()
        guard let scheme = Scheme(rawValue: schemeText) else {
            throw TargetURIError("the scheme '\(schemeText)' is neither http nor https")
        }
        var rest = text[text.index(after: colon)...]
        guard rest.starts(with: "//".utf8) else {
            throw TargetURIError("'//' and a host must follow '\(schemeText):'")
        }
        rest = rest.dropFirst(2)
        let authority = rest.prefix { $0 != UInt8(ascii: "/") && $0 != UInt8(ascii: "?") }
        let target = rest[authority.endIndex...]
        let (userinfo, host, port) = try Self.split(authority: authority, scheme: scheme)
        let pathPart = target.prefix { $0 != UInt8(ascii: "?") }
        let query = target.dropFirst(pathPart.count)
        self.init(
            origin: Origin(scheme: scheme, host: host, port: port),
            path: pathPart.isEmpty ? "/" : Self.encoded(pathPart),
            query: query.isEmpty ? nil : Self.encoded(query.dropFirst()),
            userinfo: userinfo
        )
    }

    private static func split(
        authority: Substring.UTF8View,
        scheme: Scheme
    ) throws(TargetURIError) -> (userinfo: String?, host: String, port: Int) {
        // Other parsers take a backslash for a slash and would see another host.
        guard !authority.contains(UInt8(ascii: "\\")) else {
            throw TargetURIError("the host contains a backslash")
        }
        var hostAndPort = authority
        var userinfo: String?
        // The last one, as in browsers: `http://good@evil@host` must not be two hosts to two
        // parsers.
        if let at = authority.lastIndex(of: UInt8(ascii: "@")) {
            userinfo = encoded(authority[..<at])
            hostAndPort = authority[authority.index(after: at)...]
        }
        var hostEnd = hostAndPort.endIndex
        if hostAndPort.first == UInt8(ascii: "[") {
            guard let bracket = hostAndPort.firstIndex(of: UInt8(ascii: "]")) else {
                throw TargetURIError("the IPv6 address has no closing ']'")
            }
            hostEnd = hostAndPort.index(after: bracket)
        } else if let colon = hostAndPort.firstIndex(of: UInt8(ascii: ":")) {
            hostEnd = colon
        }
        let host = try validated(host: hostAndPort[..<hostEnd])
        let rest = hostAndPort[hostEnd...]
        guard !rest.isEmpty else { return (userinfo, host, scheme.defaultPort) }
        guard rest.first == UInt8(ascii: ":") else {
            throw TargetURIError("only ':' and a port may follow the host")
        }
        let digits = rest.dropFirst()
        // RFC 3986 §3.2.3: the port may be empty.
        guard !digits.isEmpty else { return (userinfo, host, scheme.defaultPort) }
        guard digits.allSatisfy({ (0x30...0x39).contains($0) }),
            let port = Int(String(decoding: digits, as: UTF8.self)), (1...65535).contains(port)
        else {
            throw TargetURIError("the port is not a number from 1 to 65535")
        }
        return (userinfo, host, port)
    }

    private static func validated(host: Substring.UTF8View) throws(TargetURIError) -> String {
        guard !host.isEmpty, !host.elementsEqual("[]".utf8) else {
            throw TargetURIError("it names no host")
        }
        guard host.allSatisfy({ $0 < 0x80 }) else {
            throw TargetURIError("the host is not ASCII; write it in its xn-- form")
        }
        if host.first == UInt8(ascii: "[") {
            let address = host.dropFirst().dropLast()
            guard address.contains(UInt8(ascii: ":")), address.allSatisfy(isOfIPv6Address) else {
                throw TargetURIError("there is no IPv6 address between '[' and ']'")
            }
        } else {
            guard host.allSatisfy(isOfHostName) else {
                throw TargetURIError("the host contains a character that no host name has")
            }
        }
        return String(decoding: host, as: UTF8.self).lowercased()
    }

    private static func isOfIPv6Address(_ byte: UInt8) -> Bool {
        switch byte {
        case UInt8(ascii: "a")...UInt8(ascii: "f"), UInt8(ascii: "A")...UInt8(ascii: "F"),
            UInt8(ascii: "0")...UInt8(ascii: "9"), UInt8(ascii: "."), UInt8(ascii: ":"):
            true
        default:
            false
        }
    }

    private static func isOfHostName(_ byte: UInt8) -> Bool {
        switch byte {
        // No host name has `_` (RFC 1123 §2.1), but names in use do, and they resolve.
        case UInt8(ascii: "."), UInt8(ascii: "-"), UInt8(ascii: "_"), UInt8(ascii: "~"): true
        default: byte.isLetter || byte.isDigit
        }
    }

    /// Keeps escapes and all characters that a URI may contain; percent-encodes the others as
    /// UTF-8.
    private static func encoded(_ bytes: Substring.UTF8View) -> String {
        guard bytes.contains(where: mustBeEncoded) else {
            return String(decoding: bytes, as: UTF8.self)
        }
        var result: [UInt8] = []
        result.reserveCapacity(bytes.count + 32)
        for byte in bytes {
            guard mustBeEncoded(byte) else {
                result.append(byte)
                continue
            }
            result.append(contentsOf: encoded(byte).utf8)
        }
        return String(decoding: result, as: UTF8.self)
    }

    static func encoded(_ byte: UInt8) -> String {
        let escape = [UInt8(ascii: "%"), hexDigit(byte >> 4), hexDigit(byte & 0xF)]
        return String(decoding: escape, as: UTF8.self)
    }

    private static func mustBeEncoded(_ byte: UInt8) -> Bool {
        switch byte {
        case ...0x20, 0x7F..., UInt8(ascii: "\""), UInt8(ascii: "<"), UInt8(ascii: ">"),
            UInt8(ascii: "\\"), UInt8(ascii: "^"), UInt8(ascii: "`"), UInt8(ascii: "{"),
            UInt8(ascii: "|"), UInt8(ascii: "}"):
            true
        default:
            false
        }
    }

    private static func hexDigit(_ value: UInt8) -> UInt8 {
        value < 10 ? UInt8(ascii: "0") + value : UInt8(ascii: "A") + value - 10
    }
}
