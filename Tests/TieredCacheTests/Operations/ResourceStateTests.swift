import Testing

@testable import TieredCache

/// Which transfer brings a byte, and how far one goes.
@Suite("State of a resource")
struct ResourceStateTests {
    /// The state, and transfers that begin in it, each with one subscriber.
    private struct Bench {
        var state = ResourceState()
        private var last: UInt64 = 0

        mutating func begin(
            _ name: String = "a",
            coverage: Range<Int64> = 0..<1 << 30,
            horizon: Int64 = .max
        ) -> TransferID {
            last += 1
            let id = TransferID(number: last)
            _ = state.begin(
                id,
                of: ResourceStateTests.group(name),
                wanting: coverage.lowerBound,
                coverage: coverage,
                as: SubscriberID(number: last),
                .init(priority: .normal, horizon: horizon)
            )
            return id
        }

        mutating func join(_ name: String = "a", at offset: Int64 = 0) -> TransferID? {
            last += 1
            return state.join(
                ResourceStateTests.group(name),
                wanting: offset,
                as: SubscriberID(number: last),
                .init(priority: .normal)
            )
        }

        mutating func advance(_ id: TransferID, to position: Int64) {
            _ = state.update(id) { $0.didAdvance(to: position) }
        }

        mutating func linger(_ id: TransferID, for amount: Int64) {
            _ = state.update(id) { $0.linger(for: amount) }
        }

        /// Whether a transfer is behind another one.
        func isBehind(_ id: TransferID, before end: Int64) -> Bool {
            !state.transfers(aheadOf: id, before: end).isEmpty
        }
    }

    private static func group(_ name: String) -> TransferGroup {
        TransferGroup(key: CacheKey(explicit: "key"), selector: name)
    }

    @Test("one that lingers ends with the block that it is in, or with the last one")
    func lingering() {
        for (position, end) in [(65_536, 65_536), (65_537, 131_072), (131_071, 131_072)] {
            var bench = Bench()
            let id = bench.begin(horizon: 1000)
            bench.advance(id, to: Int64(position))
            bench.linger(id, for: 1 << 20)
            #expect(bench.state.transfers[id]?.horizon == Int64(end))
            bench.advance(id, to: Int64(end))
            #expect(bench.state.transfers[id]?.isWanted == false)
        }
    }

    @Test("one that lingers brings a whole last block, and a rest that is not worth a request")
    func lingeringEnd() {
        // The end of the transfer in blocks, where it is, and where it ends.
        let cases: [(blocks: Int64, position: Int64, end: Int64)] = [
            (100, 65_536, 9 * 65_536), (100, 65_537, 10 * 65_536), (100, 0, 8 * 65_536),
            (12, 0, 12 * 65_536), (13, 0, 8 * 65_536), (8, 65_536, 9 * 65_536),
        ]
        for (blocks, position, end) in cases {
            var bench = Bench()
            let id = bench.begin(coverage: 0..<blocks * 65_536, horizon: 1000)
            bench.advance(id, to: position)
            bench.linger(id, for: 8 * 65_536)
            #expect(bench.state.transfers[id]?.lingeringEnd == end, "\(blocks), \(position)")
            bench.linger(id, for: .max)
            #expect(bench.state.transfers[id]?.lingeringEnd == .max)
        }
    }

    @Test("one that lingers goes on for the next subscriber, and no other one lets it linger")
    func joinedWhileLingering() {
        var bench = Bench()
        let id = bench.begin()
        bench.linger(id, for: 10)
        #expect(bench.join() == id)
        #expect(bench.state.transfers[id]?.lingeringEnd == nil)
        bench.linger(id, for: 10)
        #expect(bench.state.transfers[id]?.lingeringEnd == nil)
    }

    @Test("one is behind another that goes on within the stored bytes before it, and no other")
    func behind() {
        var bench = Bench()
        let first = bench.begin()
        let second = bench.begin(coverage: 1 << 20..<2 << 20)
        let other = bench.begin("b", coverage: 1 << 20..<2 << 20)
        bench.advance(first, to: 900_000)
        // It waits for its first byte at 1 MiB, to where all is stored.
        #expect(bench.isBehind(first, before: 1 << 20))
        #expect(!bench.isBehind(first, before: 1 << 20 - 1))
        bench.advance(first, to: 1 << 20)
        #expect(!bench.isBehind(first, before: 1 << 20))
        #expect(!bench.isBehind(second, before: 1 << 20))
        bench.advance(second, to: 1_200_000)
        #expect(bench.isBehind(first, before: 1_200_000))
        #expect(!bench.isBehind(second, before: 1_200_000))
        #expect(!bench.isBehind(other, before: 1_200_000))
        // It ends there, and brings nothing more.
        bench.advance(second, to: 2 << 20)
        #expect(!bench.isBehind(first, before: 2 << 20))
    }

    @Test("one that is moved is joined by requests of its new group alone, until it has ended")
    func moved() {
        var bench = Bench()
        let id = bench.begin()
        _ = bench.state.update(id) { $0.move(to: Self.group("b")) }
        #expect(bench.join("a") == nil)
        #expect(bench.join("b") == id)
        bench.state.end(id, with: .success(()))
        #expect(bench.join("b") == nil)
        let isKnown = bench.state.update(id) { $0.move(to: Self.group("a")) } != nil
        #expect(!isKnown && bench.state.transfers.isEmpty)
    }

    @Test("a subscriber has one outcome: its own, or that of its transfer, until it is forgotten")
    func outcomes() {
        var bench = Bench()
        let id = bench.begin()
        #expect(bench.join() == id)
        let subscribers = [1, 2].map { SubscriberID(number: $0) }
        let isLast = if case .last = bench.state.leave(subscribers[0]) { true } else { false }
        #expect(!isLast)
        bench.state.end(id, with: .success(()))
        bench.state.end(id, with: .failure(.queueBusy))
        let isNone = if case .none = bench.state.leave(subscribers[1]) { true } else { false }
        #expect(isNone)
        let outcomes = subscribers.map { bench.state.outcome(of: $0) }
        #expect(throws: CacheError.self) { try outcomes[0]?.get() }
        #expect(throws: Never.self) { try #require(outcomes[1]).get() }
        for subscriber in subscribers { _ = bench.state.forget(subscriber) }
        #expect(subscribers.allSatisfy { bench.state.outcome(of: $0) == nil })
    }
}
