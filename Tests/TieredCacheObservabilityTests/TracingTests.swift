import HTTPTypes
import InMemoryTracing
import MetricsTestKit
import Testing
import TieredCache
import TieredCacheTesting
import Tracing

@Suite("Tracing", .timeLimit(.minutes(1)))
struct TracingTests {
    private static let url = "http://user:pass@origin.example/film?token=secret"

    @Test("a miss has one span below that of the application, without secrets; a hit has none")
    func miss() async throws {
        try await ObservedCache.run(ObservedCache.whole) { observed in
            let request = try CacheRequest(Self.url)
            let parent = observed.tracer.startSpan("application")
            try await ServiceContext.withValue(parent.context) {
                for _ in 0..<2 {
                    let data = try await observed.cache.data(for: request)
                    #expect(data.count == 3)
                }
            }
            parent.end()
            await observed.cache.shutdown()
            let spans = observed.tracer.finishedSpans.filter { $0.kind == .client }
            let span = try #require(spans.first)
            #expect(spans.count == 1 && span.operationName == "GET")
            #expect(span.parentSpanID == parent.spanID && span.traceID == parent.traceID)
            #expect(span.attributes.get("http.request.method") == .string("GET"))
            #expect(
                span.attributes.get("url.full") == .string("http://origin.example/film?...")
            )
            #expect(span.attributes.get("http.response.status_code")?.number == 200)
            #expect(span.attributes.get("tieredcache.forward_reason") == .string("uri-miss"))
            #expect(span.errors.isEmpty && span.status == nil)
            #expect(observed.transport.requests.count == 1)
            let fields = try #require(observed.transport.requests.first?.head.headerFields)
            let name = try #require(HTTPField.Name(InMemoryTracer.traceIDKey))
            #expect(fields[name] == parent.traceID)
        }
    }

    @Test("methods that are not defined share a name, so that a client cannot make many")
    func unknownMethod() async throws {
        try await ObservedCache.run(ObservedCache.whole) { observed in
            let method = try #require(HTTPRequest.Method("BREW"))
            let request = try CacheRequest(Self.url, method: method)
            _ = try await observed.cache.data(for: request)
            await observed.cache.shutdown()
            let span = try #require(observed.tracer.finishedSpans.last)
            #expect(span.operationName == "_OTHER")
            #expect(span.attributes.get("http.request.method") == .string("_OTHER"))
            #expect(observed.transport.requests.first?.head.method == method)
        }
    }

    @Test("a validation says so")
    func validation() async throws {
        let script: ScriptedTransport.Script = { request, number in
            number == 0
                ? ObservedCache.whole(request, number)
                : ScriptedResponse(status: 304, fields: [.eTag: "\"1\""])
        }
        try await ObservedCache.run(script) { observed in
            let request = try CacheRequest(Self.url)
            _ = try await observed.cache.data(for: request)
            observed.time.advance(by: .seconds(120))
            _ = try await observed.cache.data(for: request)
            await observed.cache.shutdown()
            let span = try #require(observed.tracer.finishedSpans.last)
            #expect(span.attributes.get("tieredcache.forward_reason") == .string("stale"))
            #expect(span.attributes.get("http.response.status_code")?.number == 304)
        }
    }

    @Test("an error and an error status are recorded")
    func errors() async throws {
        let script: ScriptedTransport.Script = { _, number in
            number == 0 ? ScriptedResponse(failure: .connect) : ScriptedResponse(status: 404)
        }
        try await ObservedCache.run(script) { observed in
            for _ in 0..<2 {
                await #expect(throws: CacheError.self) {
                    try await observed.cache.data(for: CacheRequest(Self.url))
                }
            }
            await observed.cache.shutdown()
            let spans = observed.tracer.finishedSpans
            #expect(spans.count == 2)
            #expect(spans.map { $0.errors.count } == [1, 0])
            #expect(spans.map { $0.status?.code } == [.error, .error])
            #expect(
                spans.map { $0.attributes.get("error.type") } == [
                    .string("connect"), .string("404"),
                ]
            )
        }
    }

    @Test("a request that joins a transfer is linked to its span; what waits keeps its context")
    func joining() async throws {
        let script: ScriptedTransport.Script = { request, number in
            var response = ObservedCache.whole(request, number)
            response.headDelay = .seconds(1)
            return response
        }
        try await ObservedCache.run(script) { observed in
            let spans = ["first", "second"].map { observed.tracer.startSpan($0) }
            observed.cache.transfers.suspend()
            let operations = try spans.map { span in
                let operation = observed.cache.operation(for: try CacheRequest(Self.url))
                ServiceContext.withValue(span.context) { operation.start() }
                return operation
            }
            // Both wait before any of them runs, and then run in a task of neither.
            while observed.cache.statistics.downloadsShared == 0 { await Task.yield() }
            observed.cache.transfers.resume()
            await observed.time.waitForSleeper(within: .seconds(1))
            observed.time.advance(by: .seconds(1))
            for operation in operations {
                _ = try await operation.response().body.collect()
            }
            await observed.cache.shutdown()
            let clients = observed.tracer.finishedSpans.filter { $0.kind == .client }
            let span = try #require(clients.first)
            #expect(clients.count == 1)
            let links = span.links.compactMap(\.context.inMemorySpanContext?.spanID)
            #expect(Set([span.parentSpanID ?? ""] + links) == Set(spans.map(\.spanID)))
            #expect(links.count == 1)
        }
    }

    @Test("without a tracer nothing is made")
    func silence() async throws {
        try await ObservedCache.run(isObserved: false, ObservedCache.whole) { observed in
            _ = try await observed.cache.data(for: CacheRequest(Self.url))
            await observed.cache.shutdown()
            #expect(observed.tracer.finishedSpans.isEmpty && observed.metrics.timers.isEmpty)
            #expect(observed.transport.requests.count == 1)
        }
    }
}

extension SpanAttribute {
    /// The value as an integer, whatever its width.
    fileprivate var number: Int64? {
        switch self {
        case .int32(let value): Int64(value)
        case .int64(let value): value
        default: nil
        }
    }
}
