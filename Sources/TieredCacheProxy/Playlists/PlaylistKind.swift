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
        let type = (contentType ?? "").prefix { $0 != ";" }.lowercased()
            .filter { $0 != " " && $0 != "\t" }
        if type.hasSuffix("mpegurl") { return .hls }
        if type == "application/dash+xml" { return .dash }
        let path = path.lowercased()
        if path.hasSuffix(".m3u8") || path.hasSuffix(".m3u") { return .hls }
        if path.hasSuffix(".mpd") { return .dash }
        return nil
    }

    /// Whether the bytes begin like a playlist of this kind.
    package func isBeginning(of bytes: some Sequence<UInt8>) -> Bool {
        let start = Array(bytes.prefix(4096))
        switch self {
        case .hls:
            // RFC 8216 §4.1 forbids a byte order mark; with one, a playlist must not bypass the
            // proxy all the same.
            let mark: [UInt8] = [0xEF, 0xBB, 0xBF]
            let text = start.starts(with: mark) ? start[3...] : start[...]
            return text.starts(with: "#EXTM3U".utf8)
        case .dash:
            return start.indices.contains { index in
                start[index] == UInt8(ascii: "<")
                    && ElementName(start[(index + 1)...]).local.elementsEqual("MPD".utf8)
            }
        }
    }
}
