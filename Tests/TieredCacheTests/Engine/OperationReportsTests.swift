import FoundationEssentials
import HTTPTypes
import SystemPackage
import Testing
import TieredCacheTesting

@_spi(Benchmarks) @testable import TieredCache

/// Progress and notices of an operation as asynchronous sequences.
@Suite("Operations: reports", .timeLimit(.minutes(1)))
struct OperationReportsTests {
    /// A cache on scripts.
    private struct Setup {
        let cache: MediaCache
        let transport: ScriptedTransport
        let time: ManualTimeSource
        let request: CacheRequest

        func operation() -> RequestOperation { cache.operation(for: request) }

        /// Moves the time on where a retry waits; ends with the notices.
        func endWaits(of operation: RequestOperation) -> Task<Void, Never> {
            Task { [notices = operation.notices, time] in
                // One without a wait needs no clock.
                for await case .retrying(let retry) in notices where retry.delay > .zero {
                    await time.waitForSleeper(within: retry.delay)
                    time.advance(by: retry.delay)
                }
            }
        }
    }

    private func run(
        retries: Int = 1,
        _ script: @escaping ScriptedTransport.Script,
        _ body: (Setup) async throws -> Void
    ) async throws {
        let time = ManualTimeSource()
        let transport = ScriptedTransport(time: time, script: script)
        var configuration = MediaCache.Configuration(path: "/cache")
        configuration.minimumFreeDisk = 0
        configuration.networkMonitor = nil
        configuration.respondsToMemoryPressure = false
        configuration.retries = retries
        configuration.timeSource = time
        configuration.transport = transport
        let cache = try MediaCache(configuration, fileSystem: InMemoryFileSystem())
        let request = try CacheRequest("http://origin.example/film")
        try await body(Setup(cache: cache, transport: transport, time: time, request: request))
        await cache.shutdown()
    }

    private static let storable: HTTPFields = [
        .cacheControl: "max-age=60", .contentLength: "3000",
    ]

    /// The script of a body that comes at once.
    private static func whole(_: TransportRequest, _: Int) -> ScriptedResponse {
        ScriptedResponse(
            status: 200,
            fields: storable,
            steps: [.bytes([UInt8](repeating: 7, count: 3000))]
        )
    }

    /// The script of an origin that closes each connection.
    private static func failure(_: TransportRequest, _: Int) -> ScriptedResponse {
        ScriptedResponse(failure: .closedEarly)
    }

    /// The script of an origin that never responds.
    private static func silence(_: TransportRequest, _: Int) -> ScriptedResponse { .silence }

    /// The script of an origin with ranges.
    private static func ranged(_ request: TransportRequest, _: Int) -> ScriptedResponse {
        var response = ScriptedOriginModel(length: 400_000).answer(request)
        response.head = response.head.map { head in
            var head = head
            head.headerFields[.date] = nil
            head.headerFields[.cacheControl] = "max-age=60"
            return head
        }
        return response
    }

    /// Reads both streams of an operation to their ends.
    private struct Consumer {
        let progress: Task<[DownloadProgress], Never>
        let notices: Task<[DownloadNotice], Never>

        init(_ operation: RequestOperation) {
            let (progress, notices) = (operation.progress, operation.notices)
            self.progress = Task { await progress.reduce(into: []) { $0.append($1) } }
            self.notices = Task { await notices.reduce(into: []) { $0.append($1) } }
        }
    }

    @Test("both sequences end after a miss, with the last progress and all notices")
    func miss() async throws {
        try await run(Self.whole) { setup in
            let operation = setup.operation()
            let consumer = Consumer(operation)
            let data = try await operation.response().body.collect()
            #expect(data.count == 3000)
            #expect(await consumer.progress.value.last?.offset == 3000)
            #expect(await consumer.notices.value == [.queued, .started(offset: 0)])
            #expect(operation.consumers == 0)
        }
    }

    @Test("they end after a hit, which reports nothing, before its body is read")
    func hit() async throws {
        try await run(Self.whole) { setup in
            _ = try await setup.cache.data(for: setup.request)
            for isInMemory in [true, false] {
                if !isInMemory { setup.cache.engine.storage.memory.remove(setup.request.key) }
                let operation = setup.operation()
                let consumer = Consumer(operation)
                let response = try await operation.response()
                #expect(response.source == (isInMemory ? .memory : .disk))
                #expect(await consumer.progress.value.isEmpty)
                #expect(await consumer.notices.value.isEmpty)
                withExtendedLifetime(response) {}
            }
        }
    }

    @Test("they end after an error; a retry is a notice")
    func error() async throws {
        try await run(retries: 2, Self.failure) { setup in
            let operation = setup.operation()
            let consumer = Consumer(operation)
            let clock = setup.endWaits(of: operation)
            await #expect(throws: CacheError.self) { try await operation.response() }
            let notices = await consumer.notices.value
            #expect(notices.prefix(2) == [.queued, .started(offset: 0)])
            #expect(notices.count > 2)
            for notice in notices.dropFirst(2) {
                guard case .retrying = notice else {
                    Issue.record("no retry: \(notices)")
                    continue
                }
            }
            _ = await consumer.progress.value
            await clock.value
        }
    }

    @Test("they end when a read of the body fails, though the operation still has the body")
    func bodyError() async throws {
        let script: ScriptedTransport.Script = { _, number in
            guard number == 0 else { return ScriptedResponse(status: 404) }
            return ScriptedResponse(
                status: 200,
                fields: Self.storable,
                steps: [
                    .bytes([1, 2, 3]), .delay(.seconds(1)),
                    .fail(TransportError(.closedEarly, "scripted")),
                ]
            )
        }
        try await run(script) { setup in
            let operation = setup.operation()
            let consumer = Consumer(operation)
            let clock = setup.endWaits(of: operation)
            let response = try await operation.response()
            // Only now: a second attempt before the response would be the response.
            await setup.time.waitForSleeper(within: .seconds(1))
            setup.time.advance(by: .seconds(1))
            await #expect(throws: CacheError.self) { try await response.body.collect() }
            #expect(await consumer.notices.value.prefix(2) == [.queued, .started(offset: 0)])
            _ = await (consumer.progress.value, clock.value)
            #expect(operation.consumers == 0)
        }
    }

    @Test("they end when the operation is cancelled")
    func cancel() async throws {
        try await run(Self.silence) { setup in
            let operation = setup.operation()
            let consumer = Consumer(operation)
            operation.start()
            await setup.transport.waitForRequests(1)
            operation.cancel()
            #expect(await consumer.progress.value.isEmpty)
            #expect(await consumer.notices.value == [.queued, .started(offset: 0)])
        }
    }

    @Test("they end when the operation is released before its start")
    func release() async throws {
        try await run(Self.whole) { setup in
            let consumer = Consumer(setup.operation())
            #expect(await consumer.progress.value.isEmpty)
            #expect(await consumer.notices.value.isEmpty)
        }
    }

    @Test("two consumers get the same")
    func twoConsumers() async throws {
        try await run(Self.whole) { setup in
            let operation = setup.operation()
            let consumers = [Consumer(operation), Consumer(operation)]
            #expect(operation.consumers == 4)
            _ = try await operation.response().body.collect()
            for consumer in consumers {
                #expect(await consumer.progress.value.last?.offset == 3000)
                #expect(await consumer.notices.value == [.queued, .started(offset: 0)])
            }
        }
    }

    @Test("a consumer that comes late gets the latest progress, all notices, and the end")
    func lateConsumers() async throws {
        let script: ScriptedTransport.Script = { _, _ in
            ScriptedResponse(
                status: 200,
                fields: Self.storable,
                steps: [
                    .delay(.seconds(1)), .bytes([UInt8](repeating: 1, count: 1000)),
                    .delay(.seconds(1)), .bytes([UInt8](repeating: 1, count: 2000)),
                ]
            )
        }
        try await run(script) { setup in
            let operation = setup.operation()
            operation.start()
            await setup.time.waitForSleeper(within: .seconds(1))
            setup.time.advance(by: .seconds(1))
            await setup.transport.waitForBytesPulled(1000)
            await setup.time.waitForSleeper(within: .seconds(1))
            let middle = Consumer(operation)
            var first = operation.progress.makeAsyncIterator()
            #expect(await first.next()?.offset == 1000)
            setup.time.advance(by: .seconds(1))
            _ = try await operation.response().body.collect()
            #expect(await middle.progress.value.last?.offset == 3000)
            #expect(await middle.notices.value == [.queued, .started(offset: 0)])
            let late = Consumer(operation)
            #expect(await late.progress.value.map(\.offset) == [3000])
            #expect(await late.notices.value == [.queued, .started(offset: 0)])
        }
    }

    @Test("a consumer that is cancelled leaves nothing behind")
    func cancelledConsumer() async throws {
        try await run(Self.silence) { setup in
            let operation = setup.operation()
            let consumer = Consumer(operation)
            operation.start()
            await setup.transport.waitForRequests(1)
            #expect(operation.consumers == 2)
            consumer.progress.cancel()
            consumer.notices.cancel()
            _ = await (consumer.progress.value, consumer.notices.value)
            #expect(operation.consumers == 0)
            operation.cancel()
        }
    }

    @Test("the transfers that reading a body starts report too, after the response")
    func gaps() async throws {
        try await run(Self.ranged) { setup in
            let head = try await setup.cache.bytes(for: setup.request, range: 0..<1000)
            _ = try await head.collect()
            let operation = setup.operation()
            let consumer = Consumer(operation)
            let response = try await operation.response()
            #expect(setup.transport.requests.count == 1 && operation.consumers == 2)
            #expect(try await response.body.collect().count == 400_000)
            #expect(await consumer.progress.value.last?.offset == 400_000)
            #expect(
                await consumer.notices.value == [.queued, .started(offset: 64 << 10)]
            )
        }
    }

    @Test("they end when a body that lacks bytes is released")
    func releasedBody() async throws {
        try await run(Self.ranged) { setup in
            _ = try await setup.cache.bytes(for: setup.request, range: 0..<1000).collect()
            func consumer() async throws -> Consumer {
                let operation = setup.operation()
                let consumer = Consumer(operation)
                _ = try await operation.response()
                #expect(operation.consumers == 2)
                return consumer
            }
            let left = try await consumer()
            #expect(await left.notices.value.isEmpty)
            #expect(await left.progress.value.isEmpty)
        }
    }
}
