import Testing
import TieredCacheTesting

@_spi(Benchmarks) @testable import TieredCache

@Suite("MemoryCache against its model", .timeLimit(.minutes(10)))
struct MemoryCacheModelTests {
    struct Shape: Sendable, CustomStringConvertible {
        let shards: Int
        let keys: Int
        let cost: Int
        let count: Int?
        let fraction: Double
        let steps: Int

        var description: String {
            "\(shards) shards, \(keys) keys, cost \(cost), count \(count ?? -1)"
        }
    }

    static let shapes = [
        Shape(shards: 1, keys: 12, cost: 40, count: nil, fraction: 0.5, steps: 1500),
        Shape(shards: 1, keys: 60, cost: 1000, count: 20, fraction: 1, steps: 1500),
        Shape(shards: 4, keys: 60, cost: 300, count: nil, fraction: 0.1, steps: 1500),
        Shape(shards: 8, keys: 400, cost: 2000, count: 150, fraction: 0.1, steps: 1500),
        Shape(shards: 2, keys: 3000, cost: 20_000, count: nil, fraction: 0.1, steps: 6000),
    ]

    @Test(arguments: shapes, 0..<4)
    func `Every step has the outcome that the model has`(shape: Shape, seed: Int) throws {
        var run = try Run(shape: shape, seed: UInt64(seed))
        for step in 0..<shape.steps {
            run.step()
            try #require(run.difference == nil, "\(shape), seed \(seed), step \(step)")
        }
    }

    /// The cache and its model side by side.
    struct Run {
        let shape: Shape
        let time = ManualTimeSource(monotonic: MonotonicTime(nanoseconds: 0))
        let cache: MemoryCache<String, Int>
        var model: MemoryModel
        var random: SplitMix
        var difference: String?
        var steps = 0
        /// Removals taken from the log, not compared yet.
        var taken: [MemoryModel.Removal] = []

        init(shape: Shape, seed: UInt64) throws {
            self.shape = shape
            random = SplitMix(seed: seed)
            let limits = try MemoryLimits(
                maximumCost: shape.cost,
                maximumCount: shape.count,
                maximumEntryFraction: shape.fraction
            )
            let log = RemovalLog()
            let cache = MemoryCache<String, Int>(
                limits: limits,
                shards: shape.shards,
                time: time,
                onRemoval: { log.append(MemoryModel.Removal(key: $0, value: $1, cause: $2)) }
            )
            self.cache = cache
            self.log = log
            model = MemoryModel(limits: limits, shardNumber: { cache.shardNumber(of: $0) })
        }

        let log: RemovalLog

        mutating func step() {
            steps += 1
            let key = "https://example.com/\(Int.random(in: 0..<shape.keys, using: &random))"
            switch Int.random(in: 0..<100, using: &random) {
            case 0..<45: expect(cache.value(forKey: key), model.value(key), "value")
            case 45..<85: insert(key)
            case 85..<90: expect(cache.remove(key), model.remove(key), "remove")
            case 90..<94: expect(cache.contains(key), model.contains(key), "contains")
            case 94..<97: advance()
            case 97: press()
            default: sweep()
            }
            compare()
        }

        private mutating func insert(_ key: String) {
            let cost = Int.random(in: -1...max(2, shape.cost / 8), using: &random)
            let lifetime =
                Bool.random(using: &random) ? nil : Int64.random(in: 0...20, using: &random)
            let isKept = cache.insert(
                steps,
                forKey: key,
                cost: cost,
                expiresAfter: lifetime.map { .nanoseconds($0) }
            )
            taken = log.take()
            let isKeptByModel = model.insert(
                key,
                steps,
                cost: cost,
                lifetime: lifetime,
                evicted: taken.first { $0.cause != .replaced }
            )
            expect(isKept, isKeptByModel, "insert")
        }

        private mutating func advance() {
            let nanoseconds = Int64.random(in: 1...8, using: &random)
            time.advance(by: .nanoseconds(nanoseconds))
            model.now += nanoseconds
        }

        private mutating func press() {
            let fraction: Double = [1, 1, 0.75, 0.5, 0].randomElement(using: &random) ?? 1
            cache.limit(toFraction: fraction)
            model.limit(fraction)
        }

        private mutating func sweep() {
            switch Int.random(in: 0..<20, using: &random) {
            case 0:
                cache.removeAll()
                model.removeAll(.explicit) { _, _ in true }
            case 1..<6:
                cache.removeAll { $0.hasSuffix("7") }
                model.removeAll(.explicit) { key, _ in key.hasSuffix("7") }
            default:
                cache.removeExpired()
                let now = model.now
                model.removeAll(.expired) { _, entry in entry.expiry.map { $0 <= now } ?? false }
            }
        }

        private mutating func expect<Value: Equatable>(
            _ found: Value,
            _ expected: Value,
            _ name: String
        ) {
            if found != expected { difference = "\(name): \(found), expected \(expected)" }
        }

        /// Sums, statistics, and which entries left why: the order too, but for sweeps, which have none.
        private mutating func compare() {
            model.statistics.cost = model.cost
            model.statistics.count = model.entries.count
            model.statistics.costLimit = model.costLimit
            for cause in RemovalCause.allCases { model.statistics.removals[cause, default: 0] += 0 }
            expect(cache.statistics, model.statistics, "statistics")
            expect(Set(taken + log.take()), Set(model.removals), "removals")
            (taken, model.removals) = ([], [])
            if let broken = cache.brokenInvariant() { difference = broken }
        }
    }
}

/// Collects what an observer is told.
final class RemovalLog: Sendable {
    private let removals = Guarded<[MemoryModel.Removal]>([])

    func append(_ removal: MemoryModel.Removal) {
        removals.withLock { $0.append(removal) }
    }

    func take() -> [MemoryModel.Removal] {
        removals.withLock { removals in
            defer { removals = [] }
            return removals
        }
    }
}
