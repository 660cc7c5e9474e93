import TestParts
import Testing
import TieredCache
import TieredCacheTesting

@testable import TieredCacheProxy

/// Bytes above 127 in fields: UTF-8 comes through unchanged, anything else is refused or harmless.
@Suite(.tags(.realTime), .timeLimit(.minutes(10)))
struct ReverseTextTests {
    @Test func textInUTF8ComesThroughBothWays() async throws {
        let text = "\u{e4}\u{20ac}\u{1F3AC}\u{FFFD}\u{F780}"
        try await ReverseFixture.run { connection, request in
            try connection.answer(
                request["x-text"] ?? "",
                "X-Text: \(text)",
                "Cache-Control: max-age=60"
            )
            return true
        } _: { fixture in
            for _ in 0..<2 {
                let answer = try await fixture.ask("/a", "X-Text: \(text)")
                #expect(answer.text == text && answer["x-text"] == text)
            }
            #expect(fixture.origin.requests.count == 1)
        }
    }

    @Test(arguments: ["GET /a HTTP/1.1\r\nHost: a\r\nX: ", "GET /"])
    func otherBytesInARequestAreRefused(beginning: String) async throws {
        try await ReverseFixture.run { connection, _ in
            try connection.answer("ok")
            return true
        } _: { fixture in
            let port = fixture.proxy.port
            for bytes: [UInt8] in [
                [0xE4], [0xC0, 0x80], [0xED, 0xA0, 0x80], [0xF5, 0x80, 0x80, 0x80],
            ] {
                let end = beginning.hasSuffix("/") ? " HTTP/1.1\r\nHost: a\r\n\r\n" : "\r\n\r\n"
                let answer = try await onThread {
                    let connection = try RawConnection(port: port)
                    try connection.send(Array(beginning.utf8) + bytes + Array(end.utf8))
                    return try connection.receiveResponse()
                }
                #expect(answer.status == 400, "\(bytes)")
            }
            #expect(fixture.origin.requests.isEmpty)
        }
    }

    /// Two tags that differ in such bytes alone look alike here, so neither vouches for anything.
    @Test func otherBytesInATagJoinNothing() async throws {
        let asked = Guarded(0)
        try await ReverseFixture.run { connection, request in
            let number = asked.withLock { count in
                count += 1
                return count
            }
            let tag: UInt8 = number == 1 ? 0xE4 : 0xF6
            let body = number == 1 ? "first" : "second"
            try connection.send(
                Array("HTTP/1.1 200 OK\r\nCache-Control: max-age=0\r\nETag: \"".utf8) + [tag]
                    + Array("\"\r\nContent-Length: \(body.utf8.count)\r\n\r\n\(body)".utf8)
            )
            return true
        } _: { fixture in
            let first = try await fixture.ask("/a")
            #expect(first.text == "first")
            let second = try await fixture.ask("/a")
            #expect(second.text == "second")
            #expect(fixture.origin.requests.count == 2)
        }
    }
}
