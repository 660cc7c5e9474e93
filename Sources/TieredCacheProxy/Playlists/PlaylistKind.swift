/// The kinds of playlists with URLs to rewrite.
package enum PlaylistKind: Hashable, Sendable {
    /// HTTP Live Streaming, master or media playlist (RFC 8216).
    case hls
    /// A DASH media presentation description (ISO/IEC 23009-1).
    case dash

    /// The largest body of a playlist, in bytes.
    package static let maximumSize: Int64 = 16 << 20

    /// The kind that the head of a response suggests; its bytes decide.
    ///
    /// - Parameters:
    ///   - contentType: the `Content-Type` field.
    ///   - path: the path of the requested URL.
    /// - Returns: the kind; nil if the response is certainly no playlist.
    package static func expected(contentType: String?, path: String) -> PlaylistKind? {
        let type = mediaType(contentType)
        if type.hasSuffix("mpegurl") { return .hls }
        if type == "application/dash+xml" { return .dash }
        let path = path.lowercased()
        if path.hasSuffix(".m3u8") || path.hasSuffix(".m3u") { return .hls }
        if path.hasSuffix(".mpd") { return .dash }
        return nil
    }

    /// Whether the bytes alone say whether a body is a playlist, if the head suggests none.
    ///
    /// Films, sounds and pictures say what they are; what many origins send in their place, such as
    /// `application/octet-stream` and `text/html`, says nothing.
    static func isUntold(contentType: String?) -> Bool {
        let type = mediaType(contentType)
        return !["video/", "audio/", "image/", "font/"].contains { type.hasPrefix($0) }
    }

    /// The kind of a body, decided by its bytes.
    ///
    /// - Parameters:
    ///   - bytes: the body, or as much of it as ``isEnough(_:)``.
    ///   - contentType: the `Content-Type` field.
    ///   - path: the path of the requested URL.
    /// - Returns: the kind; nil for no playlist.
    static func of(
        _ bytes: some Sequence<UInt8>,
        contentType: String?,
        path: String
    ) -> PlaylistKind? {
        let suggested = expected(contentType: contentType, path: path).map { [$0] }
        let possible = suggested ?? (isUntold(contentType: contentType) ? [.hls, .dash] : [])
        return possible.first { $0.isBeginning(of: bytes) }
    }

    /// The most bytes that ``isBeginning(of:)`` looks at.
    static let maximumBeginning = 4096

    /// Whether the first bytes of a body tell whether it is a playlist, whatever follows them.
    static func isEnough(_ bytes: some Collection<UInt8>) -> Bool {
        // Markup may have comments before its first element; 11 are a byte order mark, `#EXTM3U`, and
        // what ends that.
        bytes.count >= (bytes.contains(UInt8(ascii: "<")) ? maximumBeginning : 11)
    }

    private static func mediaType(_ contentType: String?) -> String {
        (contentType ?? "").prefix { $0 != ";" }.lowercased().filter { $0 != " " && $0 != "\t" }
    }

    /// Whether the bytes begin like a playlist of this kind.
    package func isBeginning(of bytes: some Sequence<UInt8>) -> Bool {
        let start = Array(bytes.prefix(Self.maximumBeginning))
        switch self {
        case .hls:
            var lines = PlaylistLines(start)
            // RFC 8216 §4.3.1.1: nothing else on the line; some add attributes behind a blank.
            return lines.next().map { line in
                let rest = start[line].dropFirst(7).first
                return start[line].starts(with: "#EXTM3U".utf8)
                    && (rest == nil || rest == UInt8(ascii: " ") || rest == UInt8(ascii: "\t"))
            } ?? false
        case .dash:
            return start.indices.contains { index in
                start[index] == UInt8(ascii: "<")
                    && ElementName(start[(index + 1)...]).local.elementsEqual("MPD".utf8)
            }
        }
    }
}
