import Testing
import TieredCacheTesting

@testable import TieredCache
@testable import TieredCacheProxy

/// Players that pause.
@Suite(.timeLimit(.minutes(10)))
struct PlayerPausingTests {
    @Test("Paused players hold no download slot, however many they are, and little memory")
    func paused() async throws {
        try await ProxyFixture.run { fixture in
            let port = fixture.proxy.port
            let targets = try (0..<8).map { number in
                fixture.origin.serve("/\(number).mp4", .fresh(256 << 20))
                return try fixture.target("/\(number).mp4")
            }
            let players = try await onThread {
                try targets.map { target in
                    let connection = try RawConnection(port: port, receiveBuffer: 65_536)
                    try connection.send(
                        "GET \(target) HTTP/1.1\r\nHost: localhost:\(port)\r\n\r\n"
                    )
                    _ = try connection.receiveHead()
                    #expect(try connection.receive(exactly: 1000).count == 1000)
                    return Paused(connection: connection)
                }
            }
            // One more gets everything, though there are only six slots.
            fixture.origin.serve("/new.mp4", .fresh(3 << 20))
            let new = try await fixture.ask("/new.mp4")
            #expect(new.body.count == 3 << 20)
            // Nor did anybody read ahead for the paused ones without end.
            for number in 0..<8 {
                let sent = fixture.origin.log.bodyBytesWritten(for: "/\(number).mp4")
                #expect(sent < 64 << 20, "\(number): \(sent)")
            }
            // Each has two pieces that wait for its socket, and the chunk that they were cut from.
            let piece = Int(HeldAnswer.maximumCopied)
            let buffered = await fixture.proxy.server.connections.bytesBuffered()
            #expect(buffered.count >= 8)
            #expect(buffered.allSatisfy { $0 <= 2 * piece + 1024 }, "\(buffered)")
            #expect(FollowingBody.chunkSize + 2 * piece <= 512 << 10)
            withExtendedLifetime(players) {}
        }
    }

    /// Keeps a connection open; nobody uses it from another thread.
    private struct Paused: @unchecked Sendable {
        // Unchecked: only kept.
        let connection: RawConnection
    }
}
