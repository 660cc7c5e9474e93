import TestParts
import Testing
import TieredCache
import TieredCacheTesting

@testable import TieredCacheProxy

/// Requests that are not passed on, seen from a client's socket.
@Suite(.tags(.realTime), .timeLimit(.minutes(10)))
struct ReverseRefusalTests {
    @Test("Shapes that two parsers might read in two ways are refused, and the connection ends")
    func oddShapes() async throws {
        try await ReverseFixture.run { connection, request in
            _ = try connection.receiveBody(of: request)
            try connection.answer("ok")
            return true
        } _: { fixture in
            for (request, status) in RequestGuardTests.bad {
                // What comes behind the odd one must never be taken for a request.
                let (text, _) = try await fixture.exchange(
                    request + "GET /smuggled HTTP/1.1\r\nHost: a\r\n\r\n"
                )
                #expect(
                    text.hasPrefix("HTTP/1.1 \(status) "),
                    "\(request.debugDescription): \(text)"
                )
                #expect(text.contains("\r\nConnection: close\r\n"))
                #expect(text.split(separator: "Connection: ").count == 2, "\(text)")
            }
            #expect(!fixture.origin.requests.contains { $0.target == "/smuggled" })
        }
    }

    @Test("What is too large is refused")
    func sizes() async throws {
        let cases: [(String, Int)] = [
            ("GET /\(String(repeating: "a", count: 20_000)) HTTP/1.1\r\nHost: a\r\n\r\n", 414),
            (
                "GET / HTTP/1.1\r\nHost: a\r\nX: \(String(repeating: "a", count: 40_000))\r\n\r\n",
                431
            ),
            (
                "GET / HTTP/1.1\r\nHost: a\r\n" + String(repeating: "X: y\r\n", count: 200)
                    + "\r\n",
                431
            ),
            ("POST / HTTP/1.1\r\nHost: a\r\nContent-Length: 1001\r\n\r\n", 413),
            ("POST / HTTP/1.1\r\nHost: a\r\nTransfer-Encoding: chunked\r\n\r\n3e9\r\n", 413),
        ]
        try await ReverseFixture.run {
            $0.settings.limits.maximumBodySize = 1000
        } origin: { connection, request in
            _ = try connection.receiveBody(of: request)
            try connection.answer("ok")
            return true
        } _: { fixture in
            for (request, status) in cases {
                let (text, _) = try await fixture.exchange(request)
                #expect(text.hasPrefix("HTTP/1.1 \(status) "), "\(text)")
            }
        }
    }

    @Test(
        "A client that takes too long gets 408",
        arguments: [
            "GET / HT", "POST / HTTP/1.1\r\nHost: a\r\nContent-Length: 5\r\n\r\nab",
            "POST / HTTP/1.1\r\nHost: a\r\nTransfer-Encoding: chunked\r\n\r\n5\r\nab",
        ]
    )
    func slowClients(request: String) async throws {
        try await ReverseFixture.run {
            $0.settings.limits.headTimeout = .milliseconds(50)
            $0.settings.limits.bodyTimeout = .milliseconds(50)
        } origin: { connection, _ in
            _ = try connection.receiveAll()
            return false
        } _: { fixture in
            let (text, _) = try await fixture.exchange(request)
            #expect(text.hasPrefix("HTTP/1.1 408 "), "\(text)")
        }
    }
}
