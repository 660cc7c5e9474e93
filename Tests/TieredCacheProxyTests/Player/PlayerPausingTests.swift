import TestParts
import Testing
import TieredCacheTesting

@testable import TieredCache
@testable import TieredCacheProxy

/// Players that pause.
@Suite(.tags(.realTime), .timeLimit(.minutes(10)))
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
            let unsent = await fixture.proxy.server.connections.unsent()
            #expect(unsent.count >= 8)
            let piece = Int(PendingResponse.maximumCopied)
            #expect(unsent.allSatisfy { $0 <= piece + 1024 }, "\(unsent)")
            withExtendedLifetime(players) {}
        }
    }

    @Test(
        "A player that pauses in what is stored keeps next to nothing in memory",
        arguments: [true, false]
    )
    func pausedInStored(isComplete: Bool) async throws {
        try await ProxyFixture.run { fixture in
            let port = fixture.proxy.port
            // A longer one may be punched, and is not sent from its file.
            let length: Int64 = 15 << 20
            let resource = OriginResource.fresh(length)
            fixture.origin.serve("/a.mp4", resource)
            let whole = try #require(resource.generatedBody)
            let stored = Int(isComplete ? length : length / 2)
            let first = try await fixture.ask("/a.mp4", "Range: bytes=0-\(stored - 1)")
            #expect(first.body.count == stored)
            let target = try fixture.target("/a.mp4")
            let player = try await onThread {
                let connection = try RawConnection(port: port, receiveBuffer: 65_536)
                try connection.send("GET \(target) HTTP/1.1\r\nHost: localhost:\(port)\r\n\r\n")
                _ = try connection.receiveHead()
                #expect(
                    try firstDifference(
                        connection.receive(exactly: 1000),
                        whole.bytes(in: 0..<1000)
                    ) == nil
                )
                return Paused(connection: connection)
            }
            // Until its socket is full.
            var unsent = await fixture.proxy.server.connections.unsent()
            while unsent.allSatisfy({ $0 == 0 }) {
                unsent = await fixture.proxy.server.connections.unsent()
            }
            #expect(unsent.allSatisfy { $0 <= PendingResponse.probe }, "\(unsent)")
            try await onThread {
                let rest = try player.connection.receive(exactly: Int(length) - 1000)
                let isRight = rest == whole.bytes(in: 1000..<length)
                #expect(isRight)
            }
        }
    }

    /// Keeps a connection open; no other thread uses it.
    private struct Paused: @unchecked Sendable {
        // Unchecked: only kept.
        let connection: RawConnection
    }
}
