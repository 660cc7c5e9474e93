import TestParts
import Testing
import TieredCache
import TieredCacheTesting

@testable import TieredCacheProxy

/// Ranges and parts near 2^62 and 2^63, where sums overflow: no response of an origin ends the
/// process (invariant 13). Each trapped, and with it all streams, where a test fails here.
@Suite(.tags(.realTime), .timeLimit(.minutes(10)))
struct FarRangeTests {
    private static let near62: Int64 = 1 << 62

    /// What is asked for, and the part that answers, whatever was asked for.
    private static let cases: [(asked: String, part: String)] = [
        ("9223372036854775800-", "9223372036854775800-9223372036854775807/*"),
        ("9223372036854775800-9223372036854775806", "9223372036854775800-9223372036854775806/*"),
        ("9223372036854775806-", "9223372036854775799-9223372036854775806/9223372036854775807"),
        ("\(near62 - 8)-", "\(near62 - 8)-\(near62 - 1)/*"),
        ("\(near62 - 8)-\(near62 - 1)", "\(near62 - 8)-\(near62 - 1)/\(near62)"),
        ("\(near62 - 9)-\(near62 - 2)", "\(near62 - 9)-\(near62 - 2)/\(near62 - 1)"),
        ("\(near62)-", "\(near62)-\(near62 + 7)/*"),
        ("-9223372036854775807", "0-7/9223372036854775806"),
        ("-8", "\(near62 - 9)-\(near62 - 2)/\(near62 - 1)"),
    ]

    private static func answer(_ part: String) -> String {
        "HTTP/1.1 206 Partial Content\r\nETag: \"1\"\r\nCache-Control: max-age=60\r\n"
            + "Content-Range: bytes \(part)\r\nContent-Length: 8\r\nConnection: close\r\n\r\n"
            + "12345678"
    }

    /// Whatever is answered, or dropped, will do.
    private static func leaveAlone(_ exchange: () async throws -> RawResponse) async {
        do {
            _ = try await exchange()
        } catch {
            // The proxy has dropped the connection, as it may.
        }
    }

    @Test("In front of a player", arguments: cases)
    func player(_ example: (asked: String, part: String)) async throws {
        try await ProxyFixture.run {
            // The far response is still being waited for when the proxy stops.
            $0.limits.stopTimeout = .milliseconds(100)
        } _: { fixture in
            fixture.origin.serve("/far", OriginScript(.raw(Self.answer(example.part))))
            fixture.origin.serve("/near", .fresh(100_000))
            let isOver = OriginGate()
            try Self.ask(for: example.asked, fixture, isOver)
            // Some of these responses make the proxy ask again, and again.
            let asking = Task {
                await fixture.origin.waitUntil { $0.exchanges(for: "/far").count >= 3 }
                isOver.open()
            }
            await isOver.wait()
            asking.cancel()
            let near = try await fixture.ask("/near")
            #expect(near.status == 200 && near.body.count == 100_000)
        }
    }

    /// Asks for what is far, as long as the proxy takes or lives; opens the gate when it has
    /// answered.
    private static func ask(
        for range: String,
        _ fixture: ProxyFixture,
        _ isOver: OriginGate
    ) throws {
        let (port, target) = (fixture.proxy.port, try fixture.target("/far"))
        let fields = "Host: 127.0.0.1:\(port)\r\nRange: bytes=\(range)\r\n"
        let request = "GET \(target) HTTP/1.1\r\n\(fields)Connection: close\r\n\r\n"
        Task {
            await onOwnThread {
                do throws(RawConnection.Failure) {
                    let connection = try RawConnection(port: port)
                    try connection.send(request)
                    _ = try connection.receiveAll()
                } catch {
                    // The proxy has dropped the connection, as it may.
                }
            }
            isOver.open()
        }
    }

    @Test("In front of an origin", arguments: cases)
    func reverse(_ example: (asked: String, part: String)) async throws {
        try await ReverseFixture.run { connection, request in
            if request.target == "/near" {
                try connection.answer("near")
            } else {
                try connection.send(Self.answer(example.part))
            }
            return request.target == "/near"
        } _: { fixture in
            await Self.leaveAlone {
                try await fixture.ask("/far", "Range: bytes=\(example.asked)")
            }
            let near = try await fixture.ask("/near")
            #expect(near.status == 200 && near.text == "near")
        }
    }
}
