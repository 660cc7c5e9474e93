import FoundationEssentials
import HTTPCaching
import HTTPTypes
import SystemPackage
import Testing
import TieredCacheTesting

@_spi(Benchmarks) @testable import TieredCache

// Decisions that cannot be made, and those that the disk hinders.
extension BodyDecisionTests {
    @Test("a body that loses a block while it is compared is right for who has read it alone")
    func lostBlock() async throws {
        let body = Data((0..<6 * 65_536).map { UInt8(truncatingIfNeeded: $0 / 7) })
        let transport = transport([try fixture.answer(body, promising: body)])
        let holdup = Fixture.Holdup()
        let lose = Guarded<(@Sendable () -> Void)?>(nil)
        let disk = WatchedFileSystem(InMemoryFileSystem(time: time)) { call, _ in
            guard call == .read, transport.requests.count > 0, holdup.hold() else { return }
            // The comparison reads four blocks first.
            lose.withLock { $0.take() }?()
        }
        try await fixture.withCache(disk, transport) { cache in
            let request = try fixture.request()
            let store = try #require(cache.engine.storage.disk.openStore)
            lose.withLock { $0 = { store.resident(request.key)?.entry.lose(5) } }
            let response = try await cache.response(for: request)
            try await read(body.count, of: response)
            _ = await holdup.isReached.wait()
            holdup.readerMayEnd()
            holdup.readerHasEnded()
            #expect(try await response.body.source.next() == nil)
            let entry = try #require(store.resident(request.key)).entry
            #expect(cache.responder.bodyJudge(for: request).awaitsDecision(entry))
        }
    }

    @Test("so is one that loses a block after it was read and before it is compared")
    func lostBlockBefore() async throws {
        let holdup = Fixture.Holdup()
        let disk = WatchedFileSystem(
            InMemoryFileSystem(time: time),
            watchWriting: { if $0 == Fixture.tail { holdup.hold() } },
            watch: { _, _ in }
        )
        let transport = transport([
            try fixture.answer(Fixture.body, promising: Fixture.body),
            try fixture.answer(Fixture.body, promising: Fixture.body),
        ])
        try await fixture.withCache(disk, transport) { cache in
            let request = try fixture.request()
            let store = try #require(cache.engine.storage.disk.openStore)
            let response = try await cache.response(for: request)
            _ = await holdup.isReached.wait()
            try await read(Fixture.body.count, of: response)
            try #require(store.resident(request.key)).entry.lose(0)
            holdup.readerMayEnd()
            holdup.readerHasEnded()
            #expect(try await response.body.source.next() == nil)
            let entry = try #require(store.resident(request.key)).entry
            #expect(cache.responder.bodyJudge(for: request).awaitsDecision(entry))
            let bytes = try await cache.data(for: request)
            #expect(firstDifference(bytes, Fixture.body) == nil)
        }
    }

    /// Reads as many bytes, and not the end behind them.
    private func read(_ count: Int, of response: CacheResponse) async throws {
        var rest = count
        while rest > 0, let chunk = try await response.body.source.next() { rest -= chunk.count }
        #expect(rest == 0)
    }

    @Test("a body of which the disk records no end is compared all the same")
    func unrecordedEnd() async throws {
        var answer = try fixture.answer(
            Fixture.wrong,
            promising: Fixture.body,
            delay: .seconds(1)
        )
        answer.head = answer.head.map { head in
            var head = head
            head.headerFields[.contentLength] = nil
            return head
        }
        let transport = transport([answer])
        let disk = InMemoryFileSystem(time: time)
        try await fixture.withCache(disk, transport) { cache in
            let response = try await cache.response(for: fixture.request())
            await time.waitForSleeper(within: .seconds(1))
            disk.fail(.create, with: .ioError, times: 20)
            time.advance(by: .seconds(1))
            let error = await #expect(throws: CacheError.self) {
                try await response.body.collect()
            }
            #expect(error?.code == .representationChanged)
            disk.heal()
        }
    }

    @Test("a last block that the disk refuses leaves the file undecided", arguments: [false, true])
    func refusedSeal(isRight: Bool) async throws {
        let disk = InMemoryFileSystem(time: time)
        try await fixture.withCache(disk, transport([])) { cache in
            let request = try fixture.request()
            let store = try #require(cache.engine.storage.disk.openStore)
            try await cache.store(Data([1]), for: request)
            let old = try #require(try store.entry(for: request.key))
            let head = try #require(StoredResponse(encoded: old.metadata))
            var fields = head.fields
            try fields.promise(Fixture.body)
            let entry = try store.makeEntry(
                for: request.key,
                metadata: head.with(fields).encoded(),
                completeLength: Int64(Fixture.body.count),
                class: [],
                succession: DiskSuccession()
            )
            let writer = try entry.beginWriting(at: 0)
            let bytes = isRight ? Fixture.body : Fixture.wrong
            try bytes.prefix(65_536 + 1).withUnsafeBytes { try writer.write($0) }
            disk.fail(.write, with: .ioError, times: 100)
            #expect(throws: CacheError.self) {
                try Data(bytes.dropFirst(65_536 + 1)).withUnsafeBytes { try writer.write($0) }
            }
            #expect(entry.isWhole && !entry.isComplete)
            let judge = cache.responder.bodyJudge(for: request)
            guard case .accepted = try await judge.decide(about: entry) else {
                Issue.record("the file is not whole")
                return
            }
            #expect(judge.awaitsDecision(entry))
            disk.heal()
            writer.end()
        }
    }

    @Test("a reader whose body is whole does not wait for an origin that does not end it")
    func openEnd() async throws {
        var answer = try fixture.answer(Fixture.body, promising: Fixture.body)
        answer.steps.append(.delay(.seconds(3600)))
        let transport = transport([answer])
        try await fixture.withCache(InMemoryFileSystem(time: time), transport) { cache in
            let response = try await cache.response(for: fixture.request())
            let reading = Task { try await response.body.collect() }
            // The connection has two seconds to become free.
            await time.waitForSleeper(within: .seconds(2))
            time.advance(by: .seconds(2))
            let bytes = try await reading.value
            #expect(firstDifference(bytes, Fixture.body) == nil)
        }
    }

    // MARK: Bytes that change

    @Test("bytes that a writer has only in memory are not those that were compared")
    func otherTail() async throws {
        let disk = InMemoryFileSystem(time: time)
        try await fixture.withCache(disk, transport([])) { cache in
            let entry = try await fixture.storePromising(Fixture.body, in: cache)
            let judge = cache.responder.bodyJudge(for: try fixture.request())
            guard case .accepted = try await judge.decide(about: entry) else {
                Issue.record("the body is right")
                return
            }
            #expect(!judge.awaitsDecision(entry))
            entry.lose(1)
            let writer = try entry.beginWriting(at: 65_536)
            disk.fail(.write, with: .ioError, times: 100)
            #expect(throws: CacheError.self) {
                try Fixture.wrong.suffix(Fixture.tail - 1).withUnsafeBytes { try writer.write($0) }
                try Data([1]).withUnsafeBytes { try writer.write($0) }
            }
            #expect(entry.isWhole && !entry.isComplete)
            #expect(judge.awaitsDecision(entry))
            // The disk has not taken them, so the file says nothing about them.
            guard case .accepted = try await judge.decide(about: entry) else {
                Issue.record("the file is not whole")
                return
            }
            #expect(judge.awaitsDecision(entry))
            disk.heal()
            writer.end()
        }
    }

    // MARK: Other requests

    @Test("what one request refuses stays where another one was given it at once")
    func hitMeanwhile() async throws {
        let holdup = Fixture.Holdup()
        let transport = transport([try fixture.answer(Fixture.body)])
        let disk = WatchedFileSystem(InMemoryFileSystem(time: time)) { call, _ in
            if call == .read, transport.requests.count > 0 { holdup.hold() }
        }
        try await fixture.withCache(disk, transport) { cache in
            let mistaken = try fixture.request(promising: Fixture.wrong)
            let plain = try fixture.request()
            let reading = Task { try await cache.response(for: mistaken).body.collect() }
            _ = await holdup.isReached.wait()
            #expect(cache.responder.hit(for: RepeatedRequest(plain), range: nil) != nil)
            holdup.readerMayEnd()
            holdup.readerHasEnded()
            let result = await reading.result
            #expect(throws: CacheError.self) { try result.get() }
            #expect(try await cache.entry(for: plain)?.isComplete == true)
        }
    }

    @Test("what one request refused of a body that the disk did not take concerns no later one")
    func refusedBefore() async throws {
        var wrong = Fixture.body
        wrong[Fixture.body.count - 1] ^= 1
        let disk = InMemoryFileSystem(time: time)
        let transport = transport([
            try fixture.answer(wrong, delay: .seconds(1)),
            try fixture.lastBlock(of: Fixture.body),
        ])
        try await fixture.withCache(disk, transport) { cache in
            let request = try fixture.request(promising: Fixture.body)
            let first = try await cache.response(for: request)
            await time.waitForSleeper(within: .seconds(1))
            disk.fail(.write, with: .noSpace, times: 100_000)
            time.advance(by: .seconds(1))
            let error = await #expect(throws: CacheError.self) {
                try await first.body.collect()
            }
            #expect(error?.code == .integrityFailed)
            let bytes = try await cache.response(for: request).body.collect()
            #expect(firstDifference(bytes, Fixture.body) == nil)
            #expect(transport.requests.count == 2)
            disk.heal()
            withExtendedLifetime(first) {}
        }
    }

    // MARK: Long comparisons

    @Test("a read waits for a comparison no longer than it may", arguments: [false, true])
    func deadline(isInterrupted: Bool) async throws {
        let holdup = Fixture.Holdup()
        let transport = transport([try fixture.answer(Fixture.body, promising: Fixture.body)])
        try await fixture.withCache(disk(holdup, transport), transport) { cache in
            let reader = try await cache.reader(for: fixture.request())
            // Not from the first byte on, so that the file has to decide.
            var position = 1
            while position < Fixture.body.count {
                position += try await reader.read(at: Int64(position), count: 1 << 20).count
            }
            _ = await holdup.isReached.wait()
            let reading = Task {
                try await reader.read(
                    at: Int64(Fixture.body.count),
                    count: 1,
                    deadline: .seconds(1)
                )
            }
            await time.waitForSleeper(within: .seconds(1))
            if isInterrupted { reader.interrupt() } else { time.advance(by: .seconds(1)) }
            let result = await reading.result
            let error = #expect(throws: CacheError.self) { try result.get() }
            #expect(error?.code == (isInterrupted ? .interrupted : .timedOut))
            reader.resume()
            holdup.readerMayEnd()
            holdup.readerHasEnded()
            // It has gone on, and is not begun anew.
            #expect(try await reader.read(at: Int64(Fixture.body.count), count: 1).isEmpty)
        }
    }

    @Test("a transfer that compares a long body has no slot")
    func slot() async throws {
        let body = Data(repeating: 5, count: 9 << 20)
        let holdup = Fixture.Holdup()
        let transport = transport([try fixture.answer(body, promising: body)])
        try await fixture.withCache(disk(holdup, transport), transport) { cache in
            let reading = Task { try await cache.response(for: fixture.request()).body.collect() }
            _ = await holdup.isReached.wait()
            let queue = cache.engine.transfers.queue
            // The reader may have begun the comparison before the transfer comes to it.
            while queue.snapshot().count(.running) > 0 { await Task.yield() }
            #expect(queue.snapshot().count(.stalled) == 1)
            holdup.readerMayEnd()
            holdup.readerHasEnded()
            let bytes = try await reading.value
            #expect(bytes.count == body.count)
        }
    }
}
