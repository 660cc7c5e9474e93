import FoundationEssentials
import HTTPCaching
import HTTPTypes
import InMemoryTracing
import MetricsTestKit
import Testing
import TieredCache
import TieredCacheTesting
import Tracing

@testable import TieredCacheObservability

@Suite("How a request to an origin ended", .timeLimit(.minutes(1)))
struct RequestEndTests {
    private static let url = "http://origin.example/film"

    /// Checks the span of a request and the labels of its duration.
    private func expect(
        _ observed: ObservedCache,
        result: String,
        isError: Bool,
        isCancelled: Bool = false
    ) throws {
        let span = try #require(observed.tracer.finishedSpans.first)
        #expect(span.errors.count == (isError ? 1 : 0))
        #expect((span.status?.code == .error) == isError)
        #expect(span.attributes.get("error.type") == (isError ? .string(result) : nil))
        let cancelled = span.attributes.get("tieredcache.cancelled")
        #expect(cancelled == (isCancelled ? .bool(true) : nil))
        _ = try observed.metrics.expectTimer(
            "tieredcache_origin_request_duration",
            [("method", "GET"), ("result", result)]
        )
    }

    @Test("silence is a time-out, before the head and in the body", arguments: [false, true])
    func timeout(hasHead: Bool) async throws {
        let script: ScriptedTransport.Script = { _, _ in
            guard hasHead else { return .silence }
            return ScriptedResponse(
                status: 200,
                fields: [.contentLength: "3"],
                steps: [.bytes([1]), .stall]
            )
        }
        try await ObservedCache.run(script) { observed in
            let body = Task { try await observed.cache.data(for: CacheRequest(Self.url)) }
            await observed.transport.waitForRequests(1)
            while observed.tracer.finishedSpans.isEmpty {
                // The body's first byte may arm the alarm anew.
                await observed.time.waitForSleeper(within: .seconds(30))
                observed.time.advance(by: .seconds(30))
                await Task.yield()
            }
            let error = await #expect(throws: CacheError.self) { try await body.value }
            #expect(error?.code == .timedOut)
            try expect(observed, result: "timedOut", isError: true)
        }
    }

    private func reading(_ response: CacheResponse) -> Task<Data, any Error> {
        Task { try await response.body.collect() }
    }

    @Test("a cancellation by the application is no error", arguments: [false, true])
    func cancellation(hasHead: Bool) async throws {
        let script: ScriptedTransport.Script = { _, _ in
            guard hasHead else { return .silence }
            return ScriptedResponse(status: 200, fields: [.contentLength: "3"], steps: [.stall])
        }
        try await ObservedCache.run(script) { observed in
            let request = try CacheRequest(Self.url)
            let body =
                if hasHead {
                    reading(try await observed.cache.response(for: request))
                } else {
                    Task { try await observed.cache.data(for: request) }
                }
            await observed.transport.waitForRequests(1)
            body.cancel()
            while observed.tracer.finishedSpans.isEmpty { await Task.yield() }
            try expect(observed, result: "cancelled", isError: false, isCancelled: true)
        }
    }

    @Test("the loss of the machine's address is the failure of a request, which is repeated")
    func lostAddress() async throws {
        let monitor = ScriptedNetworkMonitor()
        let script: ScriptedTransport.Script = { request, number in
            number == 0 ? .silence : ObservedCache.whole(request, number)
        }
        try await ObservedCache.run(monitor: monitor, script) { observed in
            let body = Task { try await observed.cache.data(for: CacheRequest(Self.url)) }
            await observed.transport.waitForRequests(1)
            monitor.loseAddress("192.0.2.1")
            #expect(try await body.value.count == 3)
            await observed.cache.shutdown()
            #expect(observed.tracer.finishedSpans.count == 2)
            try expect(observed, result: "addressLost", isError: true)
        }
    }

    @Test("a status that is not registered is reported by its class, so that there are few")
    func statusNames() async throws {
        let names = [
            (100, "1xx"), (150, "1xx"), (200, "200"), (206, "206"), (299, "2xx"), (304, "304"),
            (306, "3xx"), (404, "404"), (418, "4xx"), (499, "4xx"), (503, "503"), (599, "5xx"),
            (600, "_OTHER"), (999, "_OTHER"), (0, "_OTHER"),
        ]
        for (status, name) in names { #expect(StatusName.of(status) == name) }
        #expect(Set((0...999).map(StatusName.of)).count < 80)
    }

    @Test("an origin with a status of its own makes no label of its own", arguments: [471, 999])
    func oddStatus(status: Int) async throws {
        let script: ScriptedTransport.Script = { _, _ in ScriptedResponse(status: status) }
        try await ObservedCache.run(script) { observed in
            _ = try? await observed.cache.data(for: CacheRequest(Self.url))
            await observed.cache.shutdown()
            let result = status == 471 ? "4xx" : "_OTHER"
            _ = try observed.metrics.expectTimer(
                "tieredcache_origin_request_duration",
                [("method", "GET"), ("result", result)]
            )
            let span = try #require(observed.tracer.finishedSpans.first)
            #expect(span.attributes.get("error.type") == .string(result))
        }
    }

    @Test("a context is linked once, the parent never, and at most 128 in all")
    func links() throws {
        let tracer = InMemoryTracer()
        let parent = tracer.startSpan("parent")
        let transfer = ObservedTransfer(
            tracer: tracer,
            durations: nil,
            parent: parent.context,
            reason: .uriMiss
        )
        let contexts = (0..<100).map { tracer.startSpan("\($0)").context }
        func join(_ context: ServiceContext) {
            ServiceContext.withValue(context) { transfer.didJoin() }
        }
        transfer.didJoin()
        for context in contexts + contexts + [parent.context, .topLevel] { join(context) }
        func links() throws -> Int {
            var request = HTTPRequest(method: .get, scheme: "http", authority: "h", path: "/")
            let target = try CacheRequest(Self.url).target
            let exchange = transfer.begin(&request, to: target)
            for context in contexts { join(context) }
            exchange.end()
            return try #require(tracer.finishedSpans.last).links.count
        }
        #expect(try links() == 100)
        for number in 0..<100 { join(tracer.startSpan("more \(number)").context) }
        #expect(try links() == 128)
    }
}
