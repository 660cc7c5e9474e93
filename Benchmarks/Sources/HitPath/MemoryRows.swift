import CLevelDBCache
import Foundation
@_spi(Benchmarks) import TieredCache

/// The memory tier's rows: the hit, the insertion that evicts, two threads.
enum MemoryRows {
    static func make() throws -> [Row] {
        [try hit(), try hitWithCacheKeys(), try insertWithEviction(), try hitOnTwoThreads()]
    }

    private static let entries = 10_000

    private static func hit() throws -> Row {
        let samples = Samples(count: entries)
        let ours = try filledCache(samples.urls)
        let peer = LevelDBCache(capacity: entries * 2, filledWith: samples.urls)
        let foundation = filledNSCache(samples.urls)
        return Row(
            name: "memory hit, 75-byte URL",
            target: 0.75,
            count: 200_000,
            contenders: [
                lookups(in: ours, of: samples.lookups),
                peer.lookups(of: samples.lookups),
                nsLookups(foundation, of: samples.lookups),
            ]
        )
    }

    private static func hitWithCacheKeys() throws -> Row {
        let samples = Samples(count: entries)
        let cache = try MemoryCache<CacheKey, Payload>(limits: limits(entries * 2))
        for (number, url) in samples.urls.enumerated() {
            cache.insert(Payload(number), forKey: CacheKey(explicit: url), cost: 1)
        }
        let keys = samples.lookups.map { CacheKey(explicit: $0) }
        let peer = LevelDBCache(capacity: entries * 2, filledWith: samples.urls)
        return Row(
            name: "memory hit, CacheKey kept",
            target: 0.75,
            count: 200_000,
            contenders: [
                lookups(in: cache, of: keys),
                peer.lookups(of: samples.lookups),
            ]
        )
    }

    private static func insertWithEviction() throws -> Row {
        // Twice as many keys as fit, in turn: each insertion is new and evicts.
        let samples = Samples(count: entries * 2)
        let ours = try MemoryCache<String, Payload>(limits: limits(entries))
        let peer = LevelDBCache(capacity: entries, filledWith: [])
        let owning = LevelDBCache(capacity: entries, filledWith: [])
        let foundation = NSCache<NSString, Payload>()
        foundation.countLimit = entries
        let nsKeys = samples.lookups.map { NSString(string: $0) }
        let payloads = (0..<entries * 2).map(Payload.init)
        var (next, nsNext) = (0, 0)
        return Row(
            name: "memory insert with eviction",
            target: 1.0,
            count: 100_000,
            contenders: [
                Contender("MemoryCache") { count in
                    let (keys, values) = (samples.lookups.span, payloads.span)
                    for _ in 0..<count {
                        ours.insert(values[next], forKey: keys[next], cost: 1)
                        next = next + 1 == payloads.count ? 0 : next + 1
                    }
                },
                peer.insertions(of: samples.lookups),
                owning.owningInsertions(of: samples.lookups),
                Contender("NSCache", share: 0.02) { count in
                    for _ in 0..<count {
                        foundation.setObject(payloads[nsNext], forKey: nsKeys[nsNext])
                        nsNext = nsNext + 1 == payloads.count ? 0 : nsNext + 1
                    }
                },
            ]
        )
    }

    private static func hitOnTwoThreads() throws -> Row {
        let samples = Samples(count: entries)
        let ours = try filledCache(samples.urls)
        let peer = LevelDBCache(capacity: entries * 2, filledWith: samples.urls)
        let foundation = filledNSCache(samples.urls)
        let halves = [samples.lookups, samples.lookups.reversed()]
        return Row(
            name: "memory hit, two threads",
            target: 1.0,
            count: 400_000,
            contenders: [
                onThreads("MemoryCache", halves.map { lookups(in: ours, of: $0).run }),
                onThreads("LevelDB LRUCache", halves.map { peer.lookups(of: $0).run }),
                onThreads("NSCache", halves.map { nsLookups(foundation, of: $0).run }, share: 0.2),
            ]
        )
    }

    private static func limits(_ cost: Int) throws -> MemoryLimits {
        try MemoryLimits(maximumCost: cost)
    }

    private static func filledCache(_ urls: [String]) throws -> MemoryCache<String, Payload> {
        let cache = try MemoryCache<String, Payload>(limits: limits(urls.count * 2))
        for (number, url) in urls.enumerated() {
            cache.insert(Payload(number), forKey: url, cost: 1)
        }
        return cache
    }

    /// Lookups by keys that the caller has in hand: a span leases them without counting a
    /// reference, as the peer's pointers are.
    private static func lookups<Key>(
        in cache: MemoryCache<Key, Payload>,
        of keys: [Key]
    ) -> Contender {
        var start = 0
        return Contender("MemoryCache") { count in
            let span = keys.span
            var (next, found) = (start, 0)
            for _ in 0..<count {
                if cache.value(forKey: span[next]) != nil { found &+= 1 }
                next = next + 1 == span.count ? 0 : next + 1
            }
            start = next
            precondition(found == count)
        }
    }

    /// The same work on several threads at once; the time is that of all together per operation of
    /// one.
    private static func onThreads(
        _ name: String,
        _ bodies: [(Int) -> Void],
        share: Double = 1
    ) -> Contender {
        nonisolated(unsafe) let bodies = bodies
        return Contender(name, share: share) { count in
            DispatchQueue.concurrentPerform(iterations: bodies.count) { bodies[$0](count) }
        }
    }

    private static func filledNSCache(_ urls: [String]) -> NSCache<NSString, Payload> {
        let cache = NSCache<NSString, Payload>()
        for (number, url) in urls.enumerated() {
            cache.setObject(Payload(number), forKey: NSString(string: url))
        }
        return cache
    }

    private static func nsLookups(
        _ cache: NSCache<NSString, Payload>,
        of keys: [String]
    ) -> Contender {
        let keys = keys.map { NSString(string: $0) }
        var start = 0
        return Contender("NSCache", share: 0.2) { count in
            var (next, found) = (start, 0)
            for _ in 0..<count {
                if cache.object(forKey: keys[next]) != nil { found &+= 1 }
                next = next + 1 == keys.count ? 0 : next + 1
            }
            start = next
            precondition(found == count)
        }
    }
}
