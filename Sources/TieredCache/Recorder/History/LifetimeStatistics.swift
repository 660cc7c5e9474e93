public import HTTPCaching

extension MediaCache {
    /// The counters of a cache directory since it was created, over all processes that owned it.
    public struct LifetimeStatistics: Hashable, Sendable {
        /// The start of counting: when the directory was created, or when counters were lost.
        public var since: WallTime
        /// The counters.
        public var statistics: MediaCache.Statistics

        /// Creates a value.
        public init(since: WallTime, statistics: MediaCache.Statistics) {
            self.since = since
            self.statistics = statistics
        }
    }
}

/// The file STATS.
///
/// | offset | size | field |
/// | --- | --- | --- |
/// | 0 | 8 | magic `89 54 43 73 74 61 01 0A` (`.TCsta`, version 1, newline) |
/// | 8 | 8 | checksum: XXH3-64 of all that follows |
/// | 16 | 8 | since when, nanoseconds since 1970 |
/// | 24 | 4 | number of counts |
/// | 28 | 4 | 0 |
/// | 32 | 8 × n | the counts, in the order of `StatisticsCounters.Counter` |
///
/// A program with more counters takes missing ones as 0.
enum StatisticsRecord {
    /// `.TCsta`, version 1, newline, as a little-endian number.
    private static let magic: UInt64 = 0x0A01_6174_7343_5489
    private static let headLength = 32
    /// A longer file was not written by this program, in bytes.
    static let maximumLength = 4096

    static func encode(_ lifetime: MediaCache.LifetimeStatistics) -> [UInt8] {
        let counters = StatisticsCounters.Counter.allCases
        let total = headLength + 8 * counters.count
        return [UInt8](unsafeUninitializedCapacity: total) { buffer, count in
            count = total
            let bytes = UnsafeMutableRawBufferPointer(buffer)
            bytes.put(magic, at: 0)
            bytes.put(lifetime.since.nanoseconds, at: 16)
            bytes.put(UInt32(counters.count), at: 24)
            bytes.put(UInt32(0), at: 28)
            for counter in counters {
                let value = lifetime.statistics[keyPath: counter.field]
                bytes.put(value, at: headLength + 8 * counter.rawValue)
            }
            bytes.put(checksumOf(UnsafeRawBufferPointer(bytes)[16...]), at: 8)
        }
    }

    /// - Returns: nil for damaged or foreign bytes.
    static func decode(_ bytes: [UInt8]) -> MediaCache.LifetimeStatistics? {
        bytes.withUnsafeBytes { bytes in
            guard bytes.count >= headLength, bytes.count <= maximumLength,
                bytes.get(UInt64.self, at: 0) == magic,
                bytes.get(UInt64.self, at: 8) == checksumOf(bytes[16...]),
                Int(bytes.get(UInt32.self, at: 24)) == (bytes.count - headLength) / 8
            else { return nil }
            var statistics = MediaCache.Statistics()
            for counter in StatisticsCounters.Counter.allCases {
                let offset = headLength + 8 * counter.rawValue
                guard offset + 8 <= bytes.count else { break }
                // Sums of a few such numbers do not overflow, even if the file was edited.
                let value = bytes.get(Int64.self, at: offset)
                statistics[keyPath: counter.field] = min(max(0, value), 1 << 58)
            }
            let since = WallTime(nanoseconds: bytes.get(Int64.self, at: 16))
            return MediaCache.LifetimeStatistics(since: since, statistics: statistics)
        }
    }
}
