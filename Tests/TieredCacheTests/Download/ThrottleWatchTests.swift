import HTTPCaching
import HTTPTypes
import Testing
import TieredCacheTesting

@testable import TieredCache

/// Origins that send the beginning of a long response fast and the rest slowly.
@Suite(.timeLimit(.minutes(10)))
struct ThrottleWatchTests {
    private func at(_ milliseconds: Int64) -> MonotonicTime {
        MonotonicTime(nanoseconds: milliseconds * 1_000_000)
    }

    /// Feeds one window after the other, each of a second: its bytes and how long they were waited
    /// for.
    private func decisions(
        _ watch: inout ThrottleWatch,
        from second: Int64 = 0,
        _ windows: [(bytes: Int, waited: Duration)]
    ) -> [ThrottleWatch.Decision?] {
        windows.enumerated().map { index, window in
            let now = at(1000 * (second + Int64(index) + 1))
            return watch.didReceive(window.bytes, waited: window.waited, now: now)
        }
    }

    private let fast = (bytes: 2 << 20, waited: Duration.seconds(1))
    private let slow = (bytes: 100_000, waited: Duration.seconds(1))

    @Test("Five slow seconds after a fast one are a collapse; pieces of what was fast are tried")
    func collapses() {
        var watch = ThrottleWatch(isOn: true, now: at(0))
        let found = decisions(&watch, [fast, fast] + Array(repeating: slow, count: 5))
        #expect(found == Array(repeating: nil, count: 6) + [.bound(length: 3 << 20)])
        let helps = decisions(&watch, from: 7, [fast, fast, fast, fast])
        #expect(helps == [nil, nil, .helps(length: 3 << 20), nil])
    }

    @Test("Pieces that are no faster are given up")
    func doesNotHelp() {
        var watch = ThrottleWatch(isOn: true, now: at(0))
        _ = decisions(&watch, [fast] + Array(repeating: slow, count: 5))
        let found = decisions(&watch, from: 6, Array(repeating: slow, count: 30))
        #expect(found.compactMap { $0 } == [.doesNotHelp])
    }

    @Test("A consumer that takes its time, an origin that is always slow, a short lull: nothing")
    func innocent() {
        let lagging = (bytes: 100_000, waited: Duration.milliseconds(100))
        let trickle = (bytes: 20_000, waited: Duration.seconds(1))
        let lull = [fast] + Array(repeating: slow, count: 4) + [fast]
        for windows in [
            [fast] + Array(repeating: lagging, count: 20),
            Array(repeating: slow, count: 20), [slow] + Array(repeating: trickle, count: 20),
            lull + lull + lull,
        ] {
            var watch = ThrottleWatch(isOn: true, now: at(0))
            #expect(decisions(&watch, windows).allSatisfy { $0 == nil })
        }
        var off = ThrottleWatch(isOn: false, now: at(0))
        #expect(decisions(&off, [fast] + Array(repeating: slow, count: 9)).allSatisfy { $0 == nil })
    }

    // MARK: A whole download

    private func run(
        _ transport: ScriptedTransport,
        _ time: InstantTime,
        into sink: OffsetSink
    ) async throws -> DownloadOutcome {
        var plan = DownloadPlan(target: try TargetURI("https://far.example/a"))
        plan.policy.detectsThrottling = true
        return try await Downloader(transport: transport, time: time).run(plan, into: sink)
    }

    @Test("A download that is throttled goes on in pieces, every byte once, and says so")
    func pieces() async throws {
        let (length, limit) = (8 << 20, 2 << 20)
        let time = InstantTime()
        let transport = throttling(length, limit, time) { _ in true }
        let sink = OffsetSink()
        let outcome = try await run(transport, time, into: sink)
        #expect(sink.position == Int64(length))
        let piece = try #require(outcome.fastLength)
        #expect(ThrottleWatch.lengths.contains(piece) && piece <= limit)
        #expect(outcome.bytesReceived == Int64(length))
        let asked = transport.requests.compactMap { $0.head.headerFields[.range] }
        #expect(asked.count == transport.requests.count - 1 && asked.count > 2)
    }

    @Test("Where pieces are no faster, all of the rest is asked for again, and that is remembered")
    func noPieces() async throws {
        let (length, limit) = (8 << 20, 2 << 20)
        let time = InstantTime()
        let transport = throttling(length, limit, time) { $0 == 0 }
        let sink = OffsetSink()
        let outcome = try await run(transport, time, into: sink)
        #expect(outcome.fastLength == 0)
        #expect(sink.position == Int64(length))
        #expect(transport.requests.last?.head.headerFields[.range]?.hasSuffix("-8388607") == true)
        #expect(transport.requests.count <= 4)
    }

    private func throttling(
        _ length: Int,
        _ limit: Int,
        _ time: InstantTime,
        isFast: @escaping @Sendable (Int) -> Bool
    ) -> ScriptedTransport {
        ScriptedTransport(time: time) { request, index in
            var model = ScriptedOriginModel(length: length)
            model.chunkSize = 64 << 10
            var response = model.answer(request)
            var (steps, sent): ([ScriptedResponse.Step], Int) = ([], 0)
            for step in response.steps {
                let delay = sent < limit && isFast(index) ? Duration.milliseconds(20) : .seconds(1)
                steps += [.delay(delay), step]
                sent += model.chunkSize
            }
            response.steps = steps
            return response
        }
    }

    @Test("What an origin sends fast is remembered for an hour, and asked for in pieces")
    func remembered() async throws {
        var memory = HostTraits()
        let origin = try TargetURI("http://a/").origin
        memory.remember([], fastLength: 1 << 20, of: origin, now: at(0))
        memory.remember(.slowAnyway, of: origin, now: at(1000))
        #expect(memory.fastLength(of: origin, now: at(2000)) == 1 << 20)
        #expect(memory.limits(of: origin, now: at(2000)) == .slowAnyway)
        #expect(memory.fastLength(of: origin, now: at(4_000_000)) == nil)
        try await CacheFixture.run { fixture in
            fixture.origin.serve("/film", .generated(length: 3 << 20, cacheControl: "max-age=60"))
            let request = try fixture.request("/film")
            try await fixture.withCache { cache in
                let now = cache.engine.time.monotonicTime()
                cache.engine.origins.hosts.withLock {
                    $0.remember([], fastLength: 1 << 20, of: request.target.origin, now: now)
                }
                let data = try await cache.data(for: request)
                #expect(data.count == 3 << 20)
            }
            #expect(
                fixture.origin.log.exchanges.map(\.bodyBytesWritten)
                    == [1 << 20, 1 << 20, 1 << 20]
            )
        }
    }
}

/// Takes bytes that come in order, and keeps none.
private final class OffsetSink: DownloadSink {
    private let state = Guarded<Int64>(0)

    var position: Int64 { state.withLock { $0 } }

    func didReceiveHead(_ head: DownloadHead) async throws(CacheError) {}

    func write(_ chunk: BodyChunk, at offset: Int64) async throws(CacheError) {
        guard offset == position else { throw CacheError(.localStorage, "\(offset) is no order") }
        state.withLock { $0 += Int64(chunk.count) }
    }

    func holds(_ bytes: UnsafeRawBufferPointer, at offset: Int64) -> Bool { false }
    func shouldStop(at offset: Int64) -> Bool { false }
    func canReplaceGeneration() -> Bool { true }
    func didProgress(_ progress: DownloadProgress) {}
    func willRetry(_ retry: DownloadRetry) {}
}
