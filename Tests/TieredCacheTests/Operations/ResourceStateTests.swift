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
            _ = state.linger(SubscriberID(number: id.number), for: amount)
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
        }
    }

    @Test("one that lingers goes on for the next subscriber, and ends once all of them linger")
    func joinedWhileLingering() {
        var bench = Bench()
        let id = bench.begin()
        bench.linger(id, for: 10)
        #expect(bench.join() == id)
        #expect(bench.state.transfers[id]?.lingeringEnd == nil)
        bench.linger(id, for: 10)
        #expect(bench.state.transfers[id]?.lingeringEnd == nil)
        let stays = bench.state.linger(SubscriberID(number: 2), for: 10)
        #expect(stays != nil && bench.state.transfers[id]?.lingeringEnd == 65_536)
        bench.state.end(id, with: .success(()))
        for number in 1...2 as ClosedRange<UInt64> {
            let outcome = bench.state.outcome(of: SubscriberID(number: number))
            #expect(throws: CacheError.self) { try outcome?.get() }
        }
    }

    @Test("one whose last reader leaves while others linger ends as they do; nobody joins its end")
    func leftWhileLingering() {
        var bench = Bench()
        let id = bench.begin()
        bench.linger(id, for: 10)
        _ = bench.join()
        _ = bench.state.leave(SubscriberID(number: 2))
        let end = ResourceState.lingeringAmount
        #expect(bench.state.transfers[id]?.lingeringEnd == end)
        bench.advance(id, to: end)
        let ends = bench.state.update(id) { $0.endLingering(at: end - 1) }
        #expect(ends == false && bench.join(at: end) == id)
        _ = bench.state.leave(SubscriberID(number: 3))
        #expect(bench.state.transfers[id]?.lingeringEnd == 2 * end)
        let hasEnded = bench.state.update(id) { $0.endLingering(at: 2 * end) }
        #expect(hasEnded == true && bench.join(at: 2 * end) == nil)
    }

    @Test("its readers have stopped once all of them are silent and far behind")
    func stopped() {
        var bench = Bench()
        let start = MonotonicTime(nanoseconds: 0)
        let end = start.advanced(by: ResourceState.silenceLimit)
        let id = bench.begin()
        bench.advance(id, to: ResourceState.lead)
        // No reader is here yet.
        #expect(!bench.state.haveReadersStopped(id, now: end))
        let readers = (0..<2).map { _ in bench.state.enter(at: 0, of: id, now: start) }
        let other = bench.state.enter(at: ResourceState.lead, of: nil, now: end)
        #expect(bench.state.haveReadersStopped(id, now: end))
        let soon = MonotonicTime(nanoseconds: end.nanoseconds - 1)
        #expect(!bench.state.haveReadersStopped(id, now: soon))
        // One is near, then one has just read.
        bench.state.didRead(readers[0], to: 1, now: start)
        #expect(!bench.state.haveReadersStopped(id, now: end))
        bench.state.didRead(readers[0], to: 0, now: end)
        #expect(!bench.state.haveReadersStopped(id, now: end))
        // One that waits for another transfer, or has left, says nothing.
        let next = bench.begin("b")
        bench.state.didRead(readers[0], to: 0, waitingFor: next, now: end)
        #expect(bench.state.haveReadersStopped(id, now: end))
        bench.state.didRead(other, to: ResourceState.lead, waitingFor: id, now: end)
        #expect(!bench.state.haveReadersStopped(id, now: end))
        for reader in [other, readers[1]] { bench.state.leave(reader) }
        #expect(!bench.state.haveReadersStopped(id, now: end))
    }

    @Test("one that waits for its readers goes on where they want more, or are others")
    func paused() {
        let start = MonotonicTime(nanoseconds: 0)
        let end = start.advanced(by: ResourceState.silenceLimit)
        func paused(
            _ pause: ResourceState.Pause,
            _ change: (inout Bench, ReaderID) -> Void
        ) -> Bool {
            var bench = Bench()
            let id = bench.begin(horizon: ResourceState.lead)
            let reader = bench.state.enter(at: 0, of: id, now: start)
            bench.state.pause(id, pause, now: end)
            // There is no reason yet.
            #expect(bench.state.paused.isEmpty)
            bench.advance(id, to: ResourceState.lead)
            bench.state.pause(id, pause, now: end)
            #expect(bench.state.paused == [id: pause])
            change(&bench, reader)
            return !bench.state.paused.isEmpty
        }
        let subscriber = SubscriberID(number: 1)
        let range = ResourceState.lead..<ResourceState.lead + 1
        for pause in [ResourceState.Pause.atHorizon, .forReaders] {
            #expect(paused(pause) { _, _ in })
            #expect(paused(pause) { bench, _ in _ = bench.join("b") })
            #expect(!paused(pause) { bench, _ in _ = bench.join(at: range.lowerBound) })
            #expect(!paused(pause) { bench, _ in _ = bench.state.extend(subscriber, for: range) })
            #expect(!paused(pause) { bench, _ in _ = bench.state.leave(subscriber) })
            #expect(
                !paused(pause) { bench, _ in
                    bench.state.end(TransferID(number: 1), with: .success(()))
                }
            )
            #expect(!paused(pause) { bench, _ in bench.state.resume(TransferID(number: 1)) })
        }
        // It is at the end of a block, so one that lingers asks for no more.
        #expect(paused(.atHorizon) { bench, _ in _ = bench.state.linger(subscriber) })
        #expect(!paused(.forReaders) { bench, _ in _ = bench.state.linger(subscriber) })
        #expect(paused(.atHorizon) { $0.state.didRead($1, to: 1, now: end) })
        #expect(!paused(.forReaders) { $0.state.didRead($1, to: 1, now: end) })
        #expect(
            paused(.forReaders) { bench, _ in
                let other = bench.state.enter(at: 0, of: nil, now: end)
                bench.state.didRead(other, to: 1, now: end)
            }
        )
        #expect(
            !paused(.forReaders) { bench, _ in
                let other = bench.state.enter(at: 0, of: nil, now: end)
                let id = TransferID(number: 1)
                bench.state.didRead(other, to: 1, waitingFor: id, now: end)
            }
        )
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
        let forgotten = subscribers.map { bench.state.forget($0) }
        #expect(forgotten.allSatisfy { $0 != nil })
        #expect(subscribers.allSatisfy { bench.state.forget($0) == nil })
    }
}
