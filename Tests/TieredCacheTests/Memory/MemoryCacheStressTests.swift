import Testing
import TieredCacheTesting

@_spi(Benchmarks) @testable import TieredCache

@Suite("MemoryCache under many threads", .timeLimit(.minutes(10)))
struct MemoryCacheStressTests {
    /// A value that knows its key: a lookup that returns another's value is found out.
    final class Value: Sendable {
        let key: String

        init(_ key: String) {
            self.key = key
        }
    }

    @Test(arguments: [1, 8])
    func `All operations at once keep the structures whole`(shards: Int) async throws {
        let limits = try MemoryLimits(maximumCost: 500, maximumCount: 200)
        let removals = Guarded(0)
        let cache = MemoryCache<String, Value>(limits: limits, shards: shards) { _, _, _ in
            removals.withLock { $0 += 1 }
        }
        await withTaskGroup(of: Void.self) { group in
            for task in 0..<6 {
                group.addTask { Self.work(on: cache, seed: UInt64(task)) }
            }
        }
        // Insertions that overlapped may have left the sums above the limit for a moment only.
        cache.limit(toFraction: 1)
        #expect(cache.brokenInvariant() == nil)
        let statistics = cache.statistics
        #expect(removals.withLock { $0 } == statistics.removals.values.reduce(0, +))
        let kept = statistics.insertions - statistics.removals.values.reduce(0, +)
        #expect(kept == statistics.count)
    }

    static func work(on cache: MemoryCache<String, Value>, seed: UInt64) {
        var random = SplitMix(seed: seed)
        for _ in 0..<5000 {
            let key = "https://example.com/\(Int.random(in: 0..<400, using: &random))"
            switch Int.random(in: 0..<100, using: &random) {
            case 0..<60: #expect(cache.value(forKey: key)?.key ?? key == key)
            case 60..<94: insert(key, into: cache, &random)
            case 94..<97: cache.remove(key)
            case 97: cache.limit(toFraction: Bool.random(using: &random) ? 1 : 0.5)
            case 98: cache.removeExpired()
            default: _ = cache.statistics
            }
        }
    }

    private static func insert(
        _ key: String,
        into cache: MemoryCache<String, Value>,
        _ random: inout SplitMix
    ) {
        let lifetime: Duration? =
            Bool.random(using: &random)
            ? nil : .microseconds(Int.random(in: 0...500, using: &random))
        cache.insert(
            Value(key),
            forKey: key,
            cost: Int.random(in: 0...20, using: &random),
            expiresAfter: lifetime
        )
    }
}
