import Foundation
import HTTPTypes
import NIOCore
import NIOHTTP1
import TestParts
import Testing
import TieredCache
import TieredCacheTesting

@testable import TieredCacheProxy

/// What the reverse proxy answers on the event loop, and that it says what the long way says.
@Suite(.tags(.realTime), .timeLimit(.minutes(10)))
struct ReverseHitsTests {
    private func run(
        _ body: (ScriptedOrigin, MediaCache, ReverseResponder) async throws -> Void
    ) async throws {
        let origin = try await ScriptedOrigin.start()
        let files = try TemporaryDirectory("tieredcache-proxy")
        var configuration = MediaCache.Configuration(path: files.appending("cache"))
        configuration.minimumFreeDisk = 0
        configuration.respondsToMemoryPressure = false
        let cache = try MediaCache(configuration)
        let target = try #require(try ReverseTarget(url: origin.url("/")))
        let responder = ReverseResponder(
            cache: cache,
            target: target,
            logger: ProxySettings().logger
        )
        do {
            try await body(origin, cache, responder)
        } catch {
            await cache.shutdown()
            await origin.stop()
            throw error
        }
        await cache.shutdown()
        await origin.stop()
    }

    private func request(_ fields: KeyValuePairs<String, String> = [:]) -> ServerRequest {
        var head = HTTPRequestHead(version: .http1_1, method: .GET, uri: "/a.bin")
        head.headers.add(name: "Host", value: "any.example")
        for (name, value) in fields { head.headers.add(name: name, value: value) }
        return ServerRequest(head)
    }

    /// Stores `/a.bin` through the long way, and promotes it to memory.
    private func fill(_ origin: ScriptedOrigin, _ cache: MediaCache) async throws {
        var relayed = RelayRequest(target: try CacheRequest(origin.url("/a.bin")).target)
        relayed.fields[.userAgent] = "test"
        for try await _ in try await cache.relay(relayed).body {}
        _ = try await cache.data(for: CacheRequest(origin.url("/a.bin")))
    }

    @Test func plainRequestsAreAnsweredAtOnce() async throws {
        try await run { origin, cache, responder in
            origin.serve("/a.bin", .fresh(4096))
            #expect(responder.immediateResponse(to: request()) == nil)
            try await fill(origin, cache)
            let answer = try #require(
                responder.immediateResponse(to: request(["Accept": "*/*", "Cookie": "a=b"]))
            )
            #expect(answer.head.status == 200 && answer.range == 0..<4096)
            let lines = String(buffer: try #require(answer.head.lines))
            #expect(lines.contains("Via: 1.1 tieredcache\r\n"))
            #expect(lines.contains("Cache-Status: TieredCache; hit; ttl="))
            #expect(lines.contains("Age: "))
            #expect(!lines.lowercased().contains("content-length"))
            #expect(lines.components(separatedBy: "Date: ").count == 2)
        }
    }

    @Test(
        arguments: [
            ["Cache-Control": "no-cache"], ["pragma": "no-cache"], ["Authorization": "x"],
            ["If-None-Match": "*"], ["If-Modified-Since": "x"], ["Range": "bytes=0-1"],
            ["Expect": "x"], ["Upgrade": "h2c"],
        ] as [KeyValuePairs<String, String>]
    )
    func requestsWithAWordAboutCachingAreNot(
        fields: KeyValuePairs<String, String>
    ) async throws {
        try await run { origin, cache, responder in
            origin.serve("/a.bin", .fresh(4096))
            try await fill(origin, cache)
            #expect(responder.immediateResponse(to: request()) != nil)
            #expect(responder.immediateResponse(to: request(fields)) == nil)
        }
    }

    @Test(arguments: [
        "Vary: Accept-Encoding", "Cache-Control: no-cache", "Cache-Control: max-age=0",
    ])
    func responsesThatAreNotForEverybodyAreNot(field: String) async throws {
        try await run { origin, cache, responder in
            var resource = OriginResource.fresh(4096)
            let parts = field.components(separatedBy: ": ")
            let name = try #require(HTTPField.Name(parts[0]))
            resource.fields[name] = parts[1]
            origin.serve("/a.bin", resource)
            try await fill(origin, cache)
            #expect(responder.immediateResponse(to: request()) == nil)
        }
    }
}
