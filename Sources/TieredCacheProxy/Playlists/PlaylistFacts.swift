import HTTPCaching
package import HTTPTypes

/// The facts that determine how long a playlist may be used (RFC 8216 §6.3.4; DASH `@type`).
package struct PlaylistFacts: Hashable, Sendable {
    /// Whether the playlist declares that it will not change any more.
    package let isEnded: Bool
    /// The interval at which players reload the playlist; nil if not given.
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
        // Partial segments appear several times a second.
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

    /// The most seconds for which a stored playlist may be used without validation; nil for as long
    /// as HTTP allows.
    ///
    /// A playlist without explicit freshness is validated at each use, because a heuristic lifetime
    /// would freeze it. A live one is used for at most half its refresh interval, whatever its
    /// origin allows.
    ///
    /// - Parameter response: the stored fields.
    /// - Returns: seconds.
    package func maximumAge(_ response: HTTPFields) -> Int? {
        guard Self.hasExplicitFreshness(response) else { return 0 }
        guard !isEnded else { return nil }
        return refreshInterval.map { Int($0.components.seconds / 2) } ?? 0
    }

    /// Whether the response has an explicit lifetime.
    static func hasExplicitFreshness(_ response: HTTPFields) -> Bool {
        ResponseCacheControl(in: response).maxAge != nil || response.contains(.expires)
    }
}
