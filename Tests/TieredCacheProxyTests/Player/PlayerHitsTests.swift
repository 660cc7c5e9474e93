import Foundation
import HTTPCaching
import HTTPTypes
import NIOCore
import NIOEmbedded
import NIOHTTP1
import Testing
import TieredCache
import TieredCacheTesting

@testable import TieredCacheProxy

/// Hits that are answered on the event loop: which ones are, and that they say what the others say.
@Suite(.timeLimit(.minutes(10)))
struct PlayerHitsTests {
    private static let address = ProxyAddress(port: 9, token: "t")
    private static let target = "/t/http/h.example/film.mp4"

    /// A responder over a cache that has one film in memory.
    private struct Stage {
        let cache: MediaCache
        let time = ManualTimeSource()
        let responder: PlayerResponder
        let film: CacheRequest

        init(contentType: String = "video/mp4", length: Int = 5000) async throws {
            var configuration = MediaCache.Configuration()
            configuration.directory = nil
            configuration.respondsToMemoryPressure = false
            configuration.applicationLifetime = .seconds(60)
            configuration.timeSource = time
            cache = try MediaCache(configuration)
            var settings = ProxySettings()
            settings.timeSource = time
            responder = PlayerResponder(cache: cache, settings: settings, token: "t")
            responder.address.set(PlayerHitsTests.address)
            film = try CacheRequest("http://h.example/film.mp4")
            try await store(length, contentType)
        }

        func store(_ length: Int, _ contentType: String = "video/mp4") async throws {
            do throws(CacheError) {
                try await cache.store(Self.bytes(length), for: film, contentType: contentType)
            } catch {
                // Without a disk the memory tier has it all the same.
                try #require(error.code == .localStorage)
            }
        }

        static func bytes(_ count: Int) -> Data { Data((0..<count).map { UInt8($0 % 251) }) }

        func answer(
            _ fields: KeyValuePairs<String, String> = [:],
            target: String = PlayerHitsTests.target,
            host: String = "127.0.0.1:9",
            method: HTTPMethod = .GET
        ) -> PendingResponse? {
            var head = HTTPRequestHead(version: .http1_1, method: method, uri: target)
            head.headers.add(name: "HOST", value: host)
            for (name, value) in fields { head.headers.add(name: name, value: value) }
            return responder.immediateResponse(to: ServerRequest(head))
        }
    }

    private func text(_ answer: PendingResponse?) throws -> String {
        var buffer = ByteBuffer()
        try #require(answer).head.encode(into: &buffer, connection: .init(date: "unused"))
        return String(buffer: buffer)
    }

    private func body(_ answer: PendingResponse?) throws -> [UInt8] {
        let answer = try #require(answer)
        let start = answer.range.lowerBound
        guard let bytes = answer.copy(at: start, on: EmbeddedChannel()) else { return [] }
        return Array(bytes.readableBytesView)
    }

    @Test func plainRequestsAreAnsweredAtOnce() async throws {
        let stage = try await Stage()
        for _ in 0..<3 {
            let answer = stage.answer(["User-Agent": "VLC", "Accept": "*/*", "X": "y"])
            let head = try text(answer)
            #expect(head.hasPrefix("HTTP/1.1 200 OK\r\n"))
            #expect(head.contains("\r\nContent-Length: 5000\r\n"))
            #expect(head.contains("\r\nAccept-Ranges: bytes\r\n"))
            #expect(head.contains("\r\nContent-Type: video/mp4\r\n"))
            #expect(head.contains("\r\nCache-Status: TieredCache; hit; ttl=60; detail=memory\r\n"))
            #expect(head.components(separatedBy: "\r\nDate: ").count == 2)
            #expect(try firstDifference(body(answer), Array(Stage.bytes(5000))) == nil)
        }
        #expect(stage.cache.statistics.memoryHits == 3)
        #expect(stage.cache.statistics.bytesFromMemory == 15_000)
    }

    @Test func singleRangesAreAnsweredAtOnce() async throws {
        let stage = try await Stage()
        for (range, expected) in [
            ("0-0", 0..<1), ("100-", 100..<5000), ("-7", 4993..<5000), ("4000-9999", 4000..<5000),
        ] {
            let answer = stage.answer(["range": "bytes=\(range)"])
            let head = try text(answer)
            #expect(head.hasPrefix("HTTP/1.1 206 Partial Content\r\n"))
            #expect(
                head.contains(
                    "\r\nContent-Range: bytes \(expected.lowerBound)-\(expected.upperBound - 1)/5000\r\n"
                )
            )
            #expect(head.contains("\r\nContent-Length: \(expected.count)\r\n"))
            #expect(try firstDifference(body(answer), Array(Stage.bytes(5000)[expected])) == nil)
        }
    }

    @Test(
        arguments: [
            ["Cookie": "a=b"], ["Authorization": "x"], ["if-range": "\"x\""],
            ["IF-NONE-MATCH": "*"],
            ["If-Match": "*"], ["If-Modified-Since": "x"], ["If-Unmodified-Since": "x"],
            ["Range": "bytes=5000-"], ["Range": "bytes=0-1,4-5"], ["Range": "x"],
            ["Range": "bytes=0-1", "range": "bytes=2-3"],
            ["Content-Length": "5"],
        ] as [KeyValuePairs<String, String>]
    )
    func othersAreNot(fields: KeyValuePairs<String, String>) async throws {
        let stage = try await Stage()
        #expect(stage.answer() != nil)
        #expect(stage.answer(fields) == nil)
    }

    @Test func onlyTheOwnAddressIsAnswered() async throws {
        let stage = try await Stage()
        #expect(stage.answer() != nil)
        #expect(stage.answer(host: "localhost:9") != nil)
        for host in ["h.example", "127.0.0.1", "127.0.0.1:8"] {
            #expect(stage.answer(host: host) == nil)
        }
        #expect(stage.answer(target: "/x/http/h.example/film.mp4") == nil)
        #expect(stage.answer(target: "/t/metrics") == nil)
        #expect(stage.answer(method: .HEAD) == nil)
        #expect(stage.answer(method: .POST) == nil)
    }

    @Test func playlistsAreRewrittenElsewhere() async throws {
        let stage = try await Stage(contentType: "application/vnd.apple.mpegurl")
        #expect(stage.answer() == nil && stage.answer() == nil)
    }

    @Test func ageAndDateGoOn() async throws {
        let stage = try await Stage()
        let first = try text(stage.answer())
        #expect(first.contains("\r\nAge: 0\r\n"))
        stage.time.advance(by: .seconds(7))
        let second = try text(stage.answer())
        #expect(second.contains("\r\nAge: 7\r\n") && second.contains("; ttl=53;"))
        // Stale: the origin is to be asked.
        stage.time.advance(by: .seconds(60))
        #expect(stage.answer() == nil)
    }

    @Test func whatIsRemovedOrReplacedIsNotAnsweredWith() async throws {
        let stage = try await Stage()
        _ = try #require(stage.answer())
        try await stage.store(70)
        let head = try text(stage.answer())
        #expect(head.contains("\r\nContent-Length: 70\r\n"))
        #expect(try firstDifference(body(stage.answer()), Array(Stage.bytes(70))) == nil)
        do throws(CacheError) {
            try await stage.cache.remove(stage.film)
        } catch {
            try #require(error.code == .localStorage)
        }
        #expect(stage.answer() == nil)
    }
}
