import AsyncHTTPClient
import HTTPTypes
import NIOCore
import NIOHTTP1
import TestParts
import Testing
import TieredCache
import TieredCacheHTTPClient
import TieredCacheTesting

@Suite(
    "AsyncHTTPClient with a cache: what is not cached",
    .tags(.realTime),
    .timeLimit(.minutes(1))
)
struct UncachedRequestTests {
    @Test("a POST with a streamed body goes to the client, and what it changes is asked for anew")
    func post() async throws {
        try await ClientFixture.run { fixture in
            fixture.origin.serve("/a", .text("stored", cacheControl: "max-age=60"))
            _ = try await fixture.execute("/a")
            let parts = AsyncStream<ByteBuffer> { stream in
                stream.yield(ByteBuffer(string: "one"))
                stream.yield(ByteBuffer(string: "two"))
                stream.finish()
            }
            let posted = try await fixture.execute(
                "/a",
                method: .POST,
                body: .stream(parts, length: .known(Int64(6)))
            )
            #expect(posted.response.cacheStatus.contains("fwd=method"))
            _ = try await fixture.execute("/a")
            let exchanges = fixture.origin.log.exchanges(for: "/a")
            #expect(exchanges.map(\.method) == ["GET", "POST", "GET"])
            #expect(
                exchanges.map { String(decoding: $0.body, as: UTF8.self) } == ["", "onetwo", ""]
            )
        }
    }

    @Test("what only the client can do is left to it", arguments: ["Host", "Expect", "Upgrade"])
    func leftToClient(name: String) async throws {
        try await ClientFixture.run { fixture in
            fixture.origin.serve("/a", .text("plain", cacheControl: "max-age=60"))
            let value = ["Host": "example.org", "Expect": "100-continue"][name] ?? "none"
            for _ in 0..<2 {
                let answer = try await fixture.execute("/a", headers: [name: value])
                #expect(answer.text == "plain")
                #expect(answer.response.cacheStatus.contains("fwd=bypass"))
            }
            let field = try #require(HTTPField.Name(name))
            #expect(
                fixture.origin.log.exchanges(for: "/a").map { $0.fields[field] } == [value, value]
            )
        }
    }

    @Test("a URL or a field that is none fails as in the client")
    func invalid() async throws {
        try await ClientFixture.run { fixture in
            await #expect(throws: HTTPClientError.self) {
                try await fixture.client.execute(
                    HTTPClientRequest(url: "://"),
                    timeout: .seconds(5)
                )
            }
            await #expect(throws: HTTPClientError.self) {
                try await fixture.execute("/a", headers: ["X A": "1"])
            }
        }
    }

    @Test("a deadline ends what waits for the origin, with the client's error")
    func deadline() async throws {
        try await ClientFixture.run { fixture in
            let gate = OriginGate()
            fixture.origin.serve(
                "/a",
                .text("late"),
                OriginScript(OriginBehaviour.faithful.with { $0.gate = gate })
            )
            let request = HTTPClientRequest(url: fixture.origin.url("/a"))
            await #expect(throws: HTTPClientError.deadlineExceeded) {
                try await fixture.client.execute(request, timeout: .milliseconds(50))
            }
            await #expect(throws: HTTPClientError.deadlineExceeded) {
                try await fixture.client.execute(request, deadline: .now() - .seconds(1))
            }
            gate.open()
        }
    }

    @Test("a cancelled task ends its request")
    func cancellation() async throws {
        try await ClientFixture.run { fixture in
            let gate = OriginGate()
            fixture.origin.serve(
                "/a",
                .text("late"),
                OriginScript(OriginBehaviour.faithful.with { $0.gate = gate })
            )
            let task = Task { try await fixture.execute("/a").text }
            await fixture.origin.waitUntil { $0.exchanges(for: "/a").count == 1 }
            task.cancel()
            await #expect(throws: CancellationError.self) { try await task.value }
            gate.open()
        }
    }

    @Test("an origin that is not there, and a cache that is shut down, are told as such")
    func failures() async throws {
        try await ClientFixture.run { fixture in
            let gone = HTTPClientRequest(url: "http://127.0.0.1:1/")
            let error = await #expect(throws: CacheError.self) {
                try await fixture.client.execute(gone, timeout: .seconds(30))
            }
            #expect(error?.code == .originFailed)
            await fixture.cache.shutdown()
            await #expect(throws: HTTPClientError.alreadyShutdown) {
                try await fixture.execute("/a")
            }
        }
    }

    @Test("the calls with futures go the same ways")
    func futures() async throws {
        try await ClientFixture.run { fixture in
            fixture.origin.serve("/a", .text("future", cacheControl: "max-age=60"))
            let url = fixture.origin.url("/a")
            let first = try await fixture.client.get(url: url).get()
            let second = try await fixture.client.get(url: url).get()
            #expect(second.body.map { String(buffer: $0) } == "future")
            #expect(first.host == "127.0.0.1")
            #expect(second.history.count == 1)
            #expect(fixture.requests(for: "/a") == 1)
            let posted = try await fixture.client.post(url: url, body: .string("x")).get()
            #expect(posted.headers["Cache-Status"].first?.contains("fwd=method") == true)
            _ = try await fixture.client.get(url: url).get()
            #expect(
                fixture.origin.log.exchanges(for: "/a").map(\.method) == ["GET", "POST", "GET"]
            )
        }
    }
}
