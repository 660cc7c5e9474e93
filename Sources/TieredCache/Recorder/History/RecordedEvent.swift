public import HTTPCaching

extension MediaCache {
    /// One line of the event log of a cache directory.
    public struct RecordedEvent: Hashable, Sendable {
        /// The kind of a recorded event.
        @nonexhaustive
        public enum Kind: String, Hashable, Sendable, CaseIterable {
            /// A lookup found no usable response; the reason is a ``MediaCache/Event/MissReason``.
            case missed
            /// A download has stored bytes.
            case stored
            /// A response was not stored; the reason is the disk's error, or the rule of HTTP.
            case refused
            /// The entry was stale and was replaced or removed.
            case expired
            /// A newer body replaced the entry.
            case replaced
            /// Space was needed; the reason is `prefetchedUnused`, `leastRecentlyUsed`, `trimmed` or
            /// `volumeFloor`.
            case evicted
            /// Space was needed: the entry has lost some blocks.
            case shortened
            /// The entry was removed on request.
            case removed
            /// A block, a record, or the statistics were damaged on disk.
            case corrupted
            /// The log could not keep up; ``MediaCache/RecordedEvent/count`` events are missing.
            case lost
        }

        /// The time of the event.
        public var time: WallTime
        /// The kind of the event.
        public var kind: Kind
        /// The reason in one word; nil if the kind has none.
        public var reason: String?
        /// The name of the entry's files: 32 hexadecimal digits; nil for the whole cache.
        public var entry: String?
        /// The number of bytes, entries or events, depending on the kind; otherwise 0.
        public var count: Int64
        /// The URL without userinfo and query; nil for other keys, and if it is unknown.
        public var url: String?

        /// Creates an event.
        public init(
            time: WallTime,
            kind: Kind,
            reason: String? = nil,
            entry: String? = nil,
            count: Int64 = 0,
            url: String? = nil
        ) {
            self.time = time
            self.kind = kind
            self.reason = reason
            self.entry = entry
            self.count = count
            self.url = url
        }
    }
}

// The line in the file: `2026-11-21T08:43:38.123Z 32digits missed stale 0 https://host/path`, with
// `-` for nil.
extension MediaCache.RecordedEvent {
    /// Longer URLs are cut, in characters.
    private static let maximumURLLength = 512

    /// The line, with its newline.
    var line: String {
        "\(time.timestamp) \(entry ?? "-") \(kind.rawValue) \(reason ?? "-") \(count) "
            + "\(url.map(Self.printable) ?? "-")\n"
    }

    /// Parses a line without its newline; nil for an invalid line, such as a cut one.
    init?(line: some StringProtocol) {
        let words = line.split(separator: " ", omittingEmptySubsequences: false)
        guard words.count == 6, line.utf8.allSatisfy({ $0 >= 0x20 && $0 < 0x7F }),
            let time = WallTime(timestamp: words[0]),
            let kind = Kind(rawValue: String(words[2])), let count = Int64(words[4]),
            words[1] == "-" || MD5Digest(hexadecimal: String(words[1])) != nil
        else { return nil }
        func text(_ index: Int) -> String? { words[index] == "-" ? nil : String(words[index]) }
        self.init(
            time: time,
            kind: kind,
            reason: text(3),
            entry: text(1),
            count: count,
            url: text(5)
        )
    }

    /// Makes one word of a URL: an explicit key may contain any character.
    private static func printable(_ url: String) -> String {
        let bytes = url.unicodeScalars.prefix(maximumURLLength).map { scalar in
            scalar.value > 0x20 && scalar.value < 0x7F ? UInt8(scalar.value) : UInt8(ascii: "?")
        }
        return bytes.isEmpty ? "-" : String(decoding: bytes, as: UTF8.self)
    }
}
