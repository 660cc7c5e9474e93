import HTTPCaching
package import HTTPTypes

/// What decides how long a playlist may be used (RFC 8216 §6.3.4; DASH `@type`).
package struct PlaylistFacts: Hashable, Sendable {
    /// Whether the playlist will not change any more, by its own words.
    package let isEnded: Bool
    /// How often a player is to look for a new one; nil where it does not say.
    package let refreshInterval: Duration?

    /// Reads the facts from the bytes.
    package init(_ bytes: [UInt8], kind: PlaylistKind) {
        switch kind {
        case .hls: self.init(hls: bytes)
        case .dash: self.init(dash: bytes)
        }
    }

    private init(hls bytes: [UInt8]) {
        var (isMaster, isEnded, hasParts) = (false, false, false)
        var interval: Duration?
        for line in PlaylistLines(bytes) where bytes[line].starts(with: "#EXT".utf8) {
            let text = bytes[line]
            if text.starts(with: "#EXT-X-STREAM-INF:".utf8) { isMaster = true }
            if text.starts(with: "#EXT-X-ENDLIST".utf8) { isEnded = true }
            if text.starts(with: "#EXT-X-PART-INF:".utf8) { hasParts = true }
            if text.starts(with: "#EXT-X-TARGETDURATION:".utf8) {
                let seconds = Int(String(decoding: text.dropFirst(22).prefix(9), as: UTF8.self))
                interval = seconds.map { .seconds(max(1, $0)) }
            }
        }
        self.isEnded = isMaster || isEnded
        // Parts of a segment come several times in a second.
        refreshInterval = isEnded ? nil : hasParts ? .zero : interval
    }

    private init(dash bytes: [UInt8]) {
        var isDynamic = false
        for case .start(let name, let attributes, _, _) in XMLScanner(bytes)
        where name.local.elementsEqual("MPD".utf8) {
            isDynamic = XMLAttributes(bytes[attributes]).contains { attribute in
                attribute.name.local.elementsEqual("type".utf8)
                    && bytes[attribute.value].elementsEqual("dynamic".utf8)
            }
            break
        }
        isEnded = !isDynamic
        refreshInterval = nil
    }

    /// The most seconds for which a stored playlist may be used without asking; nil for as long as
    /// HTTP allows.
    ///
    /// One without explicit freshness is asked for each time: no guess may freeze it. A running
    /// one is used for half its refresh interval at most, whatever its origin says.
    ///
    /// - Parameter response: the fields that it is held with.
    /// - Returns: seconds.
    package func maximumAge(_ response: HTTPFields) -> Int? {
        guard Self.hasExplicitFreshness(response) else { return 0 }
        guard !isEnded else { return nil }
        return refreshInterval.map { Int($0.components.seconds / 2) } ?? 0
    }

    /// Whether the origin has said how long a response may be used, so that nothing is guessed.
    static func hasExplicitFreshness(_ response: HTTPFields) -> Bool {
        ResponseCacheControl(in: response).maxAge != nil || response.contains(.expires)
    }
}
