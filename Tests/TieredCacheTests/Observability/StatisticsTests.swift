import Testing

@testable import TieredCache

@Suite("Statistics", .timeLimit(.minutes(10)))
struct StatisticsTests {
    @Test
    func `Ratios are of hits among lookups and of cached among delivered bytes`() throws {
        var statistics = MediaCache.Statistics()
        #expect(statistics.hitRatio == nil)
        #expect(statistics.byteHitRatio == nil)
        statistics.memoryHits = 2
        statistics.diskHits = 1
        statistics.misses = 1
        statistics.bytesFromMemory = 10
        statistics.bytesFromDisk = 20
        statistics.bytesFromOrigin = 90
        #expect(statistics.hits == 3)
        #expect(statistics.bytesFromCache == 30)
        #expect(statistics.hitRatio == 0.75)
        #expect(statistics.byteHitRatio == 0.25)
    }
}

@Suite("Statistics counters", .timeLimit(.minutes(10)))
struct StatisticsCountersTests {
    @Test(arguments: StatisticsCounters.Counter.allCases)
    func `Each counter shows in one field and in no other`(
        counter: StatisticsCounters.Counter
    ) throws {
        let counters = StatisticsCounters()
        #expect(counters.statistics == MediaCache.Statistics())
        counters.add(7, to: counter)
        counters.add(to: counter)
        #expect(counters.value(of: counter) == 8)
        let fields = Mirror(reflecting: counters.statistics).children
        #expect(fields.filter { $0.value as? Int64 == 8 }.map(\.label) == ["\(counter)"])
        #expect(fields.count { $0.value as? Int64 == 0 } == fields.count - 1)
    }

    @Test
    func `No addition is lost among threads`() async {
        let counters = StatisticsCounters()
        await withTaskGroup(of: Void.self) { group in
            for _ in 0..<8 {
                group.addTask {
                    for _ in 0..<10_000 { counters.add(3, to: .bytesStored) }
                }
            }
        }
        #expect(counters.statistics.bytesStored == 240_000)
        #expect(counters.statistics.bytesEvicted == 0)
    }

    @Test
    func `An overflow wraps around instead of trapping`() {
        let counters = StatisticsCounters()
        counters.add(.max, to: .bytesFromDisk)
        counters.add(1, to: .bytesFromDisk)
        #expect(counters.value(of: .bytesFromDisk) == .min)
    }
}
