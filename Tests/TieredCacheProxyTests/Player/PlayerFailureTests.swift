import HTTPTypes
import TestParts
import Testing
import TieredCache
import TieredCacheTesting

@testable import TieredCacheProxy

/// Origins that fail a player that has bytes of a file already.
@Suite(.tags(.realTime), .timeLimit(.minutes(10)))
struct PlayerFailureTests {
    private static let length: Int64 = 300_000

    /// All that comes for a range.
    private static func received(
        _ fixture: ProxyFixture,
        _ range: String,
        at path: String = "/a.mp4"
    ) async throws -> [UInt8] {
        let (port, target) = (fixture.proxy.port, try fixture.target(path))
        return try await onThread {
            let connection = try RawConnection(port: port)
            try connection.send(
                "GET \(target) HTTP/1.1\r\nHost: localhost:\(port)\r\n"
                    + "Connection: close\r\nRange: bytes=\(range)\r\n\r\n"
            )
            do throws(RawConnection.Failure) {
                return try connection.receiveAll()
            } catch {
                // A reset is a dropped connection as well.
                return []
            }
        }
    }

    private static func isError(_ received: [UInt8]) -> Bool {
        let text = String(decoding: received.prefix(12), as: UTF8.self)
        return text.hasPrefix("HTTP/1.1 4") || text.hasPrefix("HTTP/1.1 5")
    }

    @Test(
        "What was answered before is not answered with an error, though nothing of it is stored",
        arguments: [404, 410, 403]
    )
    func answeredBefore(_ status: Int) async throws {
        try await ProxyFixture.run { fixture in
            let film = OriginResource.generated(length: Self.length, cacheControl: "no-store")
            fixture.origin.serve("/a.mp4", film)
            let first = try await fixture.ask("/a.mp4", "Range: bytes=0-9")
            #expect(first.status == 206)
            fixture.origin.serve("/a.mp4", film, OriginScript(.status(status)))
            let received = try await Self.received(fixture, "200000-")
            let text = String(decoding: received.prefix(100), as: UTF8.self)
            #expect(!Self.isError(received), "\(text)")
        }
    }

    /// Responses that are as wrong at the next attempt.
    private static let finalInHead = [
        "HTTP/1.1 200 OK\r\nContent-Length: 3\r\nContent-Length: 4\r\n\r\nabcd",
        "HTTP/1.1 200 OK\r\nContent-Encoding: br\r\nContent-Length: 3\r\n\r\nabc",
        "HTTP/1.1 302 Found\r\nContent-Length: 0\r\n\r\n",
        "HTTP/1.1 302 Found\r\nLocation: ftp://h/\r\nContent-Length: 0\r\n\r\n",
    ]
    private static let finalInBody = [
        "HTTP/1.1 200 OK\r\nTransfer-Encoding: chunked\r\n\r\nx\r\n",
        "HTTP/1.1 200 OK\r\nContent-Encoding: gzip\r\nContent-Length: 3\r\n\r\nabc",
    ]

    @Test(
        "What a retry cannot help is asked for once: films and playlists",
        arguments: finalInHead + finalInBody,
        ["/a.mp4", "/a.m3u8"]
    )
    func askedForOnce(_ response: String, _ path: String) async throws {
        try await ProxyFixture.run { fixture in
            fixture.origin.serve(path, OriginScript(.raw(response)))
            let received = try await Self.received(fixture, "0-", at: path)
            let isTold = path == "/a.m3u8" || Self.finalInHead.contains(response)
            // The head of a film is passed on before its body is known to be wrong.
            let text = String(decoding: received, as: UTF8.self)
            #expect(text.hasPrefix("HTTP/1.1 502") || !isTold)
            // A film of unknown length is asked for as a whole after a part of it.
            #expect(fixture.requests(path) <= (isTold ? 1 : 2))
        }
    }

    @Test("After bytes that came the rest is asked for, and that alone", arguments: [true, false])
    func wrongInTheMiddle(isRepaired: Bool) async throws {
        try await ProxyFixture.run { fixture in
            let film = OriginResource.fresh(Self.length)
            let body = try #require(film.generatedBody).bytes(in: 0..<100_000)
            let tag = try #require(film.entityTagValue)
            let head =
                "HTTP/1.1 200 OK\r\nCache-Control: max-age=60\r\nETag: \(tag)\r\n"
                + "Transfer-Encoding: chunked\r\n\r\n\(String(100_000, radix: 16))\r\n"
            let wrong = OriginBehaviour.faithful.with {
                $0.response = .raw(Array(head.utf8) + body + Array("\r\nx\r\n".utf8))
            }
            let syntax = OriginBehaviour.raw("HTTP/1.1 200 OK\r\nA b: c\r\n\r\n")
            let script = OriginScript.first(1, wrong).then(isRepaired ? .faithful : syntax)
            fixture.origin.serve("/a.mp4", film, script)
            let received = try await Self.received(fixture, "0-")
            #expect(received.count >= (isRepaired ? 300_000 : 0))
            #expect(fixture.requests("/a.mp4") <= (isRepaired ? 3 : 2))
        }
    }

    @Test("What was never answered gets the error, and so does a new play", arguments: [404, 403])
    func errorsAreTold(_ status: Int) async throws {
        try await ProxyFixture.run { fixture in
            fixture.origin.serve("/a.mp4", OriginScript(.status(status)))
            let cold = try await fixture.ask("/a.mp4", "Range: bytes=5-")
            #expect(cold.status == status)
            let film = OriginResource.generated(length: Self.length, cacheControl: "no-cache")
            fixture.origin.serve("/a.mp4", film)
            #expect(try await fixture.ask("/a.mp4", "Range: bytes=0-9").status == 206)
            fixture.origin.serve("/a.mp4", film, OriginScript(.status(status)))
            #expect(try await fixture.ask("/a.mp4", "Range: bytes=0-").status == status)
            #expect(try await fixture.ask("/a.mp4").status == status)
        }
    }

    @Test("An origin that wants credentials says so, also in the middle of a file")
    func credentials() async throws {
        try await ProxyFixture.run { fixture in
            let film = OriginResource.generated(length: Self.length, cacheControl: "no-cache")
            fixture.origin.serve("/a.mp4", film)
            let first = try await fixture.ask("/a.mp4", "Range: bytes=0-9")
            #expect(first.status == 206)
            fixture.origin.serve("/a.mp4", film, OriginScript(.status(401)))
            #expect(try await fixture.ask("/a.mp4", "Range: bytes=200000-").status == 401)
        }
    }
}
