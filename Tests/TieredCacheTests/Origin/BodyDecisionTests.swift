import FoundationEssentials
import HTTPCaching
import HTTPTypes
import SystemPackage
import Testing
import TieredCacheTesting

@_spi(Benchmarks) @testable import TieredCache

/// Row 27: one decision about one generation, for all its readers.
@Suite("One decision about one body", .timeLimit(.minutes(1)))
struct BodyDecisionTests {
    typealias Fixture = DigestFixture

    let fixture = DigestFixture()
    var time: ManualTimeSource { fixture.time }

    /// A disk that holds the first read after a request was sent: that of the comparison.
    func disk(
        _ holdup: Fixture.Holdup,
        _ transport: ScriptedTransport
    ) -> WatchedFileSystem {
        WatchedFileSystem(InMemoryFileSystem(time: time)) { call, _ in
            if call == .read, transport.requests.count > 0 { holdup.hold() }
        }
    }

    func transport(_ answers: [ScriptedResponse]) -> ScriptedTransport {
        ScriptedTransport(time: time) { _, index in
            index < answers.count ? answers[index] : ScriptedResponse(failure: .connect)
        }
    }

    // MARK: Readers

    /// A way to read a body while it is being compared.
    enum Way: CaseIterable {
        case otherFields
        case cacheOnly
        case stream
        case reader
        case immediateHit
    }

    private func read(_ way: Way, from cache: MediaCache) async throws -> Data {
        var request = try fixture.request()
        switch way {
        case .otherFields:
            request.fields[.acceptLanguage] = "de"
            return try await cache.response(for: request).body.collect()
        case .cacheOnly:
            request.policy = .cacheOnly
            return try await cache.response(for: request).body.collect()
        case .stream:
            let response = try await cache.responder.streamedResponse(
                for: request,
                deadline: .seconds(5)
            )
            return try await response.body.collect()
        case .reader:
            let reader = try await cache.reader(for: request)
            let bytes = try await reader.read(at: 0, count: Fixture.body.count)
            let end = try await reader.read(at: Int64(Fixture.body.count), count: 1)
            return bytes + end
        case .immediateHit:
            request.fields[.acceptLanguage] = "de"
            let hit = cache.responder.hit(for: RepeatedRequest(request), range: nil)
            guard let hit else { throw CacheError(.representationChanged, "no hit yet") }
            return Data(repeating: 0, count: Int(hit.completeLength))
        }
    }

    @Test("every reader of a body that is being compared waits for that", arguments: Way.allCases)
    func waits(_ way: Way) async throws {
        let holdup = Fixture.Holdup()
        let transport = transport([try fixture.answer(Fixture.wrong, promising: Fixture.body)])
        try await fixture.withCache(disk(holdup, transport), transport) { cache in
            let first = try await cache.response(for: fixture.request())
            _ = await holdup.isReached.wait()
            let reading = Task { try await read(way, from: cache) }
            if way == .immediateHit { _ = await reading.result }
            holdup.readerMayEnd()
            let result = await reading.result
            holdup.readerHasEnded()
            let error = #expect(throws: CacheError.self) { try result.get() }
            #expect(error?.code == .representationChanged)
            #expect(transport.requests.count == 1)
            withExtendedLifetime(first) {}
        }
    }

    @Test("two groups of transfers make one decision, which counts once")
    func once() async throws {
        let transport = transport([
            try fixture.answer(Fixture.wrong, promising: Fixture.body, delay: .seconds(1)),
            try fixture.lastBlock(of: Fixture.wrong, promising: Fixture.body),
            try fixture.answer(Fixture.body, promising: Fixture.body),
        ])
        try await fixture.withCache(InMemoryFileSystem(time: time), transport) { cache in
            let request = try fixture.request()
            let first = try await cache.response(for: request)
            await time.waitForSleeper(within: .seconds(1))
            var other = request
            other.fields[.userAgent] = "other"
            let asked = other
            let early = await #expect(throws: CacheError.self) {
                try await cache.response(for: asked).body.collect()
            }
            #expect(early?.code == .representationChanged)
            time.advance(by: .seconds(1))
            let late = await #expect(throws: CacheError.self) { try await first.body.collect() }
            #expect(late?.code == .representationChanged)
            // The second attempt is still to come, and is right.
            let bytes = try await cache.data(for: request)
            #expect(firstDifference(bytes, Fixture.body) == nil)
        }
    }

    // MARK: Expectations of requests

    @Test("an expectation that is not met fails its own request alone")
    func otherExpectation() async throws {
        let answer = try fixture.answer(Fixture.body, delay: .seconds(1))
        let transport = transport([answer, answer, answer])
        try await fixture.withCache(InMemoryFileSystem(time: time), transport) { cache in
            let request = try fixture.request()
            let mistaken = try fixture.request(promising: Fixture.wrong)
            let first = try await cache.response(for: request)
            await time.waitForSleeper(within: .seconds(1))
            let second = try await cache.response(for: mistaken)
            let reading = Task { try await second.body.collect() }
            time.advance(by: .seconds(1))
            let bytes = try await first.body.collect()
            #expect(firstDifference(bytes, Fixture.body) == nil)
            let result = await reading.result
            let error = #expect(throws: CacheError.self) { try result.get() }
            #expect(error?.code == .representationChanged)
            #expect(transport.requests.count == 1)
            #expect(try await cache.entry(for: request)?.isComplete == true)
            // It is fetched once more for the request that expects something else, and stays.
            let again = Task { try await cache.data(for: mistaken) }
            await transport.waitForRequests(2)
            await time.waitForSleeper(within: .seconds(1))
            time.advance(by: .seconds(1))
            let failure = await #expect(throws: CacheError.self) { try await again.value }
            #expect(failure?.code == .integrityFailed)
            #expect(try await cache.entry(for: request)?.isComplete == true)
            let stored = try await cache.data(for: request)
            #expect(firstDifference(stored, Fixture.body) == nil)
            #expect(transport.requests.count == 2)
        }
    }

    @Test("what is stored is compared with what a request expects", arguments: [false, true])
    func expectationOfStored(isInMemory: Bool) async throws {
        let transport = transport([
            try fixture.answer(Fixture.wrong), try fixture.answer(Fixture.body),
        ])
        try await fixture.withCache(InMemoryFileSystem(time: time), transport) { cache in
            let request = try fixture.request()
            if isInMemory {
                _ = try await cache.data(for: request)
            } else {
                _ = try await cache.response(for: request).body.collect()
            }
            let right = try fixture.request(promising: Fixture.body)
            #expect(cache.cachedData(for: right) == nil)
            let bytes = try await cache.data(for: right)
            #expect(firstDifference(bytes, Fixture.body) == nil)
            #expect(cache.cachedData(for: right) == Fixture.body)
            #expect(transport.requests.count == 2)
        }
    }

    // MARK: Names and reports

    @Test("a successor takes no name before it was compared")
    func name() async throws {
        let transport = transport([])
        try await fixture.withCache(InMemoryFileSystem(time: time), transport) { cache in
            var pinned = try fixture.request()
            pinned.options.insert(.pinned)
            let request = pinned
            try await cache.store(Fixture.body, for: request)
            let storage = cache.engine.storage
            let store = try #require(storage.disk.openStore)
            let old = try #require(try store.entry(for: request.key))
            var head = try #require(StoredResponse(encoded: old.metadata))
            var fields = head.fields
            try fields.promise(Fixture.body)
            head = head.with(fields)
            let next = try store.makeEntry(
                for: request.key,
                metadata: head.encoded(),
                completeLength: Int64(Fixture.wrong.count),
                class: [.pinned],
                succession: DiskSuccession(awaitsDecision: true)
            )
            try Fixture.wrong.withUnsafeBytes { bytes in
                try next.beginWriting(at: 0).writeAndEnd(bytes)
            }
            #expect(next.isSuccessor && next.isComplete)
            let judge = cache.responder.bodyJudge(for: request)
            judge.takeName(next)
            #expect(next.isSuccessor)
            let found = try #require(try store.entry(for: request.key))
            #expect(found === old)
            await #expect(throws: CacheError.self) { try await judge.decide(about: next) }
            judge.takeName(next)
            let kept = try #require(try store.entry(for: request.key))
            #expect(kept === old)
        }
    }

    @Test("the sequences of an operation end when another one's transfer has stored the last byte")
    func sequences() async throws {
        let transport = transport([try fixture.answer(Fixture.body, delay: .seconds(1))])
        try await fixture.withCache(InMemoryFileSystem(time: time), transport) { cache in
            let request = try fixture.request()
            let first = try await cache.response(for: request)
            await time.waitForSleeper(within: .seconds(1))
            let operation = cache.operation(for: request)
            let response = try await operation.response()
            let (progress, notices) = (operation.progress, operation.notices)
            let ends = Task {
                for await _ in progress {}
                for await _ in notices {}
            }
            time.advance(by: .seconds(1))
            _ = try await first.body.collect()
            await ends.value
            #expect(operation.consumers == 0)
            withExtendedLifetime(response) {}
        }
    }

    // MARK: After a crash

    @Test("a body whose comparison was not recorded is compared when it is read again")
    func reopened() async throws {
        let disk = InMemoryFileSystem(time: time)
        let request = try fixture.request()
        try await fixture.withCache(disk, transport([])) { cache in
            try await cache.store(Fixture.wrong, for: request)
            let store = try #require(cache.engine.storage.disk.openStore)
            let entry = try #require(try store.entry(for: request.key))
            let head = try #require(StoredResponse(encoded: entry.metadata))
            var fields = head.fields
            try fields.promise(Fixture.body)
            try entry.updateMetadata(head.with(fields).encoded())
        }
        let transport = transport([try fixture.answer(Fixture.body, promising: Fixture.body)])
        try await fixture.withCache(disk, transport) { cache in
            let plain = RepeatedRequest(request)
            _ = try await cache.entry(for: request)
            #expect(cache.responder.hit(for: plain, range: nil) == nil)
            let bytes = try await cache.data(for: request)
            #expect(firstDifference(bytes, Fixture.body) == nil)
            #expect(transport.requests.count == 1)
        }
    }
}
