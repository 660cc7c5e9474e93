import FoundationEssentials
import HTTPTypes
import InMemoryTracing
import Testing
import TieredCache
import TieredCacheProxy
import TieredCacheTesting

@Suite("Traces of a proxy's clients", .timeLimit(.minutes(1)))
struct ClientTraceTests {
    private func get(_ url: URL, _ fields: HTTPFields) async throws -> Data {
        let client = try MediaCache(MediaCache.Configuration(directory: nil))
        var request = CacheRequest(url)
        request.fields = fields
        let data: Data
        do {
            data = try await client.data(for: request)
        } catch {
            await client.shutdown()
            throw error
        }
        await client.shutdown()
        return data
    }

    private func fields(trace: String, span: String) throws -> HTTPFields {
        [
            try #require(HTTPField.Name(InMemoryTracer.traceIDKey)): trace,
            try #require(HTTPField.Name(InMemoryTracer.spanIDKey)): span,
        ]
    }

    @Test("the request to the origin belongs to the trace of the client that asked the proxy")
    func parents() async throws {
        try await ObservedCache.run(ObservedCache.whole) { observed in
            let reverse = try await ReverseProxy.start(
                cache: observed.cache,
                origin: "http://origin.example/"
            )
            let player = try await PlayerProxy.start(cache: observed.cache)
            let film = try #require(URL(string: "http://origin.example/film"))
            let asked = [
                reverse.base.appending(path: "poster"), try player.url(for: film),
                reverse.base.appending(path: "other"),
            ]
            for (number, url) in asked.enumerated() {
                let trace = try number == 2 ? [:] : fields(trace: "t\(number)", span: "s\(number)")
                #expect(try await get(url, trace) == Data([1, 2, 3]))
            }
            await player.stop()
            await reverse.stop()
            await observed.cache.shutdown()
            let spans = observed.tracer.finishedSpans
            #expect(spans.map(\.parentSpanID) == ["s0", "s1", nil])
            #expect(spans.prefix(2).map(\.traceID) == ["t0", "t1"])
            // The origin gets the span of the request to it, not that of the client.
            let name = try #require(HTTPField.Name(InMemoryTracer.spanIDKey))
            let sent = observed.transport.requests.map { $0.head.headerFields[name] }
            #expect(sent == spans.map(\.spanID))
        }
    }
}
