public import HTTPCaching

extension MediaCache {
    /// One line of the event log of a cache directory.
    public struct RecordedEvent: Hashable, Sendable {
        /// What happened.
        @nonexhaustive
        public enum Kind: String, Hashable, Sendable, CaseIterable {
            /// A lookup did not answer; the reason is a ``MediaCache/Event/MissReason``.
            case missed
            /// A download has stored bytes.
            case stored
            /// Something could not be stored; the reason is the disk's trouble, or HTTP's rule.
            case refused
            /// The entry was stale and something else took its place.
            case expired
            /// Something newer took the entry's place.
            case replaced
            /// Room was needed; the reason is `prefetchedUnused`, `leastRecentlyUsed`, `trimmed` or
            /// `volumeFloor`.
            case evicted
            /// Room was needed: the entry is still there, less some blocks.
            case shortened
            /// Somebody removed the entry.
            case removed
            /// What was on disk was not what had been written: a block, a record, or these statistics.
            case corrupted
            /// The log did not keep up; as many events as the number says are not in it.
            case lost
        }

        /// When.
        public var time: WallTime
        /// What.
        public var kind: Kind
        /// Why, in one word; nil where the kind says it all.
        public var reason: String?
        /// The name of the entry's files: 32 hexadecimal digits; nil for the whole cache.
        public var entry: String?
        /// Bytes, or a number of entries or events, where there is one.
        public var count: Int64
        /// The URL without userinfo and query; nil for other keys, and where it was not known.
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

// As it stands in the file: `2026-11-21T08:43:38.123Z 32digits missed stale 0 https://host/path`,
// with `-` for what there is not.
extension MediaCache.RecordedEvent {
    /// A longer URL is cut: a line stays a line.
    private static let maximumURLLength = 512

    /// The line, with its end.
    var line: String {
        "\(time.timestamp) \(entry ?? "-") \(kind.rawValue) \(reason ?? "-") \(count) "
            + "\(url.map(Self.printable) ?? "-")\n"
    }

    /// Reads a line without its end; nil for what is none, such as one that was torn.
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

    /// One word: a key that the application chose may hold anything.
    private static func printable(_ url: String) -> String {
        let scalars = url.unicodeScalars.prefix(maximumURLLength).map { scalar -> Unicode.Scalar in
            scalar.value > 0x20 && scalar.value < 0x7F ? scalar : "?"
        }
        var text = ""
        text.unicodeScalars.append(contentsOf: scalars)
        return text.isEmpty ? "-" : text
    }
}
