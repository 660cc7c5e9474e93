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
    private static func received(_ fixture: ProxyFixture, _ range: String) async throws -> [UInt8] {
        let (port, target) = (fixture.proxy.port, try fixture.target("/a.mp4"))
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
