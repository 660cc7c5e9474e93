import Testing
import TieredCacheTesting

@_spi(Benchmarks) @testable import TieredCache

@Suite("MemoryCache", .timeLimit(.minutes(10)))
struct MemoryCacheTests {
    @Test
    func `The least recently used leaves first`() throws {
        let cache = try Self.cache(cost: 3, shards: 1)
        for key in ["a", "b", "c"] { cache.insert(1, forKey: key, cost: 1) }
        #expect(cache.value(forKey: "a") == 1)
        cache.insert(1, forKey: "d", cost: 1)
        #expect(["a", "b", "c", "d"].map { cache.contains($0) } == [true, false, true, true])
    }

    @Test
    func `A look that does not use leaves the order alone`() throws {
        let cache = try Self.cache(cost: 2, shards: 1)
        cache.insert(1, forKey: "a", cost: 1)
        cache.insert(1, forKey: "b", cost: 1)
        #expect(cache.contains("a"))
        cache.insert(1, forKey: "c", cost: 1)
        #expect(!cache.contains("a"))
        #expect(cache.statistics.hits == 0)
    }

    @Test
    func `A value above the fraction is refused and supersedes the older one`() throws {
        let limits = try MemoryLimits(maximumCost: 100)
        let cache = MemoryCache<String, Int>(limits: limits)
        #expect(cache.insert(1, forKey: "a", cost: 10))
        #expect(!cache.insert(2, forKey: "a", cost: 11))
        #expect(cache.value(forKey: "a") == nil)
        #expect(cache.statistics.refusals == 1)
        #expect(cache.statistics.removals[.replaced] == 1)
    }

    @Test
    func `A time to live ends exactly`() throws {
        let time = ManualTimeSource()
        let cache = try Self.cache(cost: 10, time: time)
        cache.insert(1, forKey: "a", cost: 1, expiresAfter: .seconds(5))
        cache.insert(2, forKey: "b", cost: 1, expiresAfter: .zero)
        #expect(cache.value(forKey: "b") == nil)
        time.advance(by: .nanoseconds(4_999_999_999))
        #expect(cache.value(forKey: "a") == 1)
        time.advance(by: .nanoseconds(1))
        #expect(cache.value(forKey: "a") == nil)
        #expect(cache.statistics.removals[.expired] == 2)
        cache.insert(3, forKey: "c", cost: 1, expiresAfter: .seconds(Int64.max))
        #expect(cache.value(forKey: "c") == 3)
    }

    @Test
    func `A hit without a time to live reads no clock`() throws {
        let cache = try Self.cache(cost: 10, time: ForbiddenTime())
        cache.insert(1, forKey: "a", cost: 1)
        #expect(cache.value(forKey: "a") == 1)
        for key in 0..<20 { cache.insert(1, forKey: "\(key)", cost: 1) }
    }

    @Test
    func `The observer may use the cache`() throws {
        let box = Guarded<MemoryCache<String, Int>?>(nil)
        let limits = try MemoryLimits(maximumCost: 4, maximumEntryFraction: 1)
        let cache = MemoryCache<String, Int>(limits: limits, shards: 1) { key, value, cause in
            guard cause == .size, value < 10, let cache = box.withLock({ $0 }) else { return }
            cache.insert(value + 10, forKey: "saved \(key)", cost: 1)
        }
        box.withLock { $0 = cache }
        for number in 0..<8 { cache.insert(number, forKey: "\(number)", cost: 1) }
        #expect(cache.brokenInvariant() == nil)
        #expect(cache.totalCost == 4)
        box.withLock { $0 = nil }
    }

    @Test
    func `Values are released when they leave and when the cache does`() throws {
        final class Probe: Sendable {}
        weak var left: Probe?
        weak var stayed: Probe?
        do {
            let limits = try MemoryLimits(maximumCost: 1, maximumEntryFraction: 1)
            let cache = MemoryCache<String, Probe>(limits: limits)
            let (first, second) = (Probe(), Probe())
            (left, stayed) = (first, second)
            cache.insert(first, forKey: "a", cost: 1)
            cache.insert(second, forKey: "b", cost: 1)
            #expect(cache.entryCount == 1)
        }
        #expect(left == nil)
        #expect(stayed == nil)
    }

    @Test
    func `Strings are compared by their bytes`() throws {
        let cache = try Self.cache(cost: 10)
        cache.insert(1, forKey: "caf\u{e9}", cost: 1)
        #expect(cache.value(forKey: "cafe\u{301}") == nil)
        #expect(cache.value(forKey: String(decoding: Array("café".utf8), as: UTF8.self)) == 1)
    }

    @Test
    func `Any hashable key will do`() throws {
        let limits = try MemoryLimits(maximumCost: 100)
        let numbers = MemoryCache<Int, String>(limits: limits)
        let keys = MemoryCache<CacheKey, Int>(limits: limits)
        for number in 0..<50 {
            numbers.insert("\(number)", forKey: number, cost: 1)
            keys.insert(number, forKey: CacheKey(explicit: "\(number)"), cost: 1)
        }
        for number in 0..<50 {
            #expect(numbers.value(forKey: number) == "\(number)")
            #expect(keys.value(forKey: CacheKey(explicit: "\(number)")) == number)
        }
        #expect(numbers.brokenInvariant() == nil)
        #expect(keys.brokenInvariant() == nil)
    }

    @Test
    func `What was inserted after a million hits elsewhere is younger`() throws {
        let cache = try Self.cache(cost: 3, shards: 2)
        let names = (0..<100).map { "\($0)" }
        let here = names.filter { cache.shardNumber(of: $0) == 0 }
        let there = names.filter { cache.shardNumber(of: $0) == 1 }
        cache.insert(1, forKey: here[0], cost: 1)
        for _ in 0..<(1 << 20) + 10 { _ = cache.value(forKey: here[0]) }
        cache.insert(2, forKey: there[0], cost: 1)
        cache.insert(3, forKey: there[1], cost: 1)
        cache.insert(4, forKey: there[2], cost: 1)
        #expect(!cache.contains(here[0]))
        #expect(cache.contains(there[0]))
    }

    @Test
    func `A predicate may ask the cache, and change it`() throws {
        let cache = try Self.cache(cost: 100)
        for number in 0..<50 { cache.insert(number, forKey: "\(number)", cost: 1) }
        cache.removeAll { key in
            cache.remove("7")
            return cache.value(forKey: key).map { $0 % 2 == 0 } ?? false
        }
        #expect(cache.entryCount == 24)
        #expect(!cache.contains("8") && !cache.contains("7") && cache.contains("9"))
        #expect(cache.brokenInvariant() == nil)
    }

    static func cache(
        cost: Int,
        shards: Int = 8,
        time: any TimeSource = ManualTimeSource()
    ) throws -> MemoryCache<String, Int> {
        let limits = try MemoryLimits(maximumCost: cost, maximumEntryFraction: 1)
        return MemoryCache(limits: limits, shards: shards, time: time)
    }
}
