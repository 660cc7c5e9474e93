import HTTPCaching
import Testing

@testable import TieredCache

@Suite("STATS", .timeLimit(.minutes(10)))
struct StatisticsRecordTests {
    private static var sample: MediaCache.LifetimeStatistics {
        var statistics = MediaCache.Statistics()
        for counter in StatisticsCounters.Counter.allCases {
            statistics[keyPath: counter.field] = Int64(counter.rawValue * 1_000_003 + 1)
        }
        return MediaCache.LifetimeStatistics(
            since: WallTime(seconds: 1_767_225_600),
            statistics: statistics
        )
    }

    @Test("every count has a place of its own")
    func roundTrip() {
        let bytes = StatisticsRecord.encode(Self.sample)
        #expect(StatisticsRecord.decode(bytes) == Self.sample)
        #expect(bytes.count <= StatisticsRecord.maximumLength)
    }

    @Test("a flipped bit anywhere, and any other length, is noticed")
    func damaged() {
        let bytes = StatisticsRecord.encode(Self.sample)
        for bit in 0..<(8 * bytes.count) {
            var flipped = bytes
            flipped[bit / 8] ^= 1 << UInt8(bit % 8)
            #expect(StatisticsRecord.decode(flipped) == nil, "bit \(bit)")
        }
        for count in 0..<bytes.count {
            #expect(StatisticsRecord.decode(Array(bytes[..<count])) == nil, "\(count) bytes")
        }
        #expect(StatisticsRecord.decode(bytes + [0]) == nil)
        #expect(StatisticsRecord.decode([UInt8](repeating: 0, count: 5000)) == nil)
    }

    @Test("a file with fewer counts, or with more, is of another version and read all the same")
    func otherVersions() {
        for count in [1, 5, StatisticsCounters.Counter.allCases.count + 3] {
            var bytes = [UInt8](repeating: 0, count: 32 + 8 * count)
            let whole = StatisticsRecord.encode(Self.sample)
            for index in 0..<min(bytes.count, whole.count) { bytes[index] = whole[index] }
            bytes.withUnsafeMutableBytes { bytes in
                bytes.put(UInt32(count), at: 24)
                bytes.put(checksumOf(UnsafeRawBufferPointer(bytes)[16...]), at: 8)
            }
            let found = StatisticsRecord.decode(bytes)
            #expect(found?.statistics.memoryHits == Self.sample.statistics.memoryHits)
            let last = StatisticsCounters.Counter.missesBypassed.rawValue
            let expected = count > last ? Self.sample.statistics.missesBypassed : 0
            #expect(found?.statistics.missesBypassed == expected)
        }
    }

    @Test("sums and differences")
    func arithmetic() {
        let sample = Self.sample.statistics
        #expect(sample + MediaCache.Statistics() == sample)
        #expect((sample + sample) - sample == sample)
        #expect((sample - sample).lookups == 0)
    }

    @Test("Made-up numbers do not overflow when they are summed")
    func madeUp() throws {
        var statistics = MediaCache.Statistics()
        for counter in StatisticsCounters.Counter.allCases {
            statistics[keyPath: counter.field] = .max
        }
        let lifetime = MediaCache.LifetimeStatistics(
            since: WallTime(seconds: 0),
            statistics: statistics
        )
        let bytes = StatisticsRecord.encode(lifetime)
        let found = try #require(StatisticsRecord.decode(bytes)).statistics
        let total = found + found
        #expect(total.lookups > 0 && total.bytesFromCache > 0)
    }
}
