import TestParts
import Testing
import TieredCache
import TieredCacheTesting

@testable import TieredCacheProxy

/// Players that close their connection and open another at the next byte.
@Suite(.tags(.realTime), .timeLimit(.minutes(10)))
struct PlayerReconnectTests {
    @Test("A reconnect at the next byte goes on with the transfer that is under way")
    func reconnect() async throws {
        // No deadline ends before the player is back: the clock stands still.
        let time = ManualTimeSource()
        let change: (inout ProxySettings) -> Void = { $0.timeSource = time }
        try await ProxyFixture.run(cacheTime: time, change) { fixture in
            let gate = OriginGate()
            let film = OriginResource.generated(length: 700_000, cacheControl: "max-age=600")
            fixture.origin.serve("/film.mp4", film, .first(1, .wait(for: gate, after: 200_000)))
            let (port, target) = (fixture.proxy.port, try fixture.target("/film.mp4"))
            // Three blocks are stored and the fourth is on its way when the player leaves.
            let met = 3 * 65_536
            let first = try await onThread {
                let connection = try RawConnection(port: port)
                let fields = "Host: 127.0.0.1:\(port)\r\nRange: bytes=0-\r\n"
                try connection.send("GET \(target) HTTP/1.1\r\n\(fields)\r\n")
                _ = try connection.receiveHead()
                return try connection.receive(exactly: met)
            }
            async let rest = fixture.ask("/film.mp4", "Range: bytes=\(met)-") {
                // The response has begun, and the transfer was not ended before.
                gate.open()
            }
            let body = try await first + rest.body
            #expect(firstDifference(body, GeneratedBody(seed: 1, length: 700_000).bytes()) == nil)
            // Each byte was sent once.
            #expect(fixture.origin.log.bodyBytesWritten(for: "/film.mp4") == 700_000)
        }
    }
}
