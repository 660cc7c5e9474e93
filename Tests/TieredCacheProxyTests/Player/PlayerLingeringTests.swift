import TestParts
import Testing
import TieredCache
import TieredCacheTesting

@testable import TieredCacheProxy

/// How long the origin is kept busy for a player that has left.
@Suite(.tags(.realTime), .timeLimit(.minutes(10)))
struct PlayerLingeringTests {
    @Test("Two seconds after the last player has left, whatever it was waiting for, it is over")
    func twoSeconds() async throws {
        let time = ManualTimeSource()
        let change: (inout ProxySettings) -> Void = {
            $0.timeSource = time
            $0.lingerTime = ProxySettings().lingerTime
        }
        try await ProxyFixture.run(cacheTime: time, change) { fixture in
            fixture.origin.serve("/a.mp4", .fresh(1 << 20), OriginScript(.stall(after: 200_000)))
            let (port, target) = (fixture.proxy.port, try fixture.target("/a.mp4"))
            try await onThread {
                let connection = try RawConnection(port: port)
                try connection.send("GET \(target) HTTP/1.1\r\nHost: localhost:\(port)\r\n\r\n")
                _ = try connection.receiveHead()
                #expect(try connection.receive(exactly: 100_000).count == 100_000)
            }
            // One thing waits for the player to come back, and nothing does after that.
            await time.waitForSleeper(within: .seconds(2))
            time.advance(by: .seconds(2))
            await fixture.origin.waitUntil { $0.openResponses == 0 }
        }
    }

    @Test("A request whose player has left before its answer goes on for one that comes back")
    func beforeTheAnswer() async throws {
        let time = ManualTimeSource()
        let change: (inout ProxySettings) -> Void = {
            $0.timeSource = time
            $0.lingerTime = ProxySettings().lingerTime
        }
        try await ProxyFixture.run(cacheTime: time, change) { fixture in
            let gate = OriginGate()
            let late = OriginBehaviour.faithful.with { $0.gate = gate }
            fixture.origin.serve("/a.mp4", .fresh(1000), .first(1, late))
            let (port, target) = (fixture.proxy.port, try fixture.target("/a.mp4"))
            let hasAsked = ThreadGate()
            async let player: Void = onThread {
                let connection = try RawConnection(port: port)
                try connection.send("GET \(target) HTTP/1.1\r\nHost: localhost:\(port)\r\n\r\n")
                hasAsked.wait()
            }
            await fixture.origin.waitUntil { !$0.exchanges.isEmpty }
            hasAsked.open()
            try await player
            await time.waitForSleeper(within: ProxySettings().lingerTime)
            async let answer = fixture.ask("/a.mp4")
            gate.open()
            #expect(try await answer.body.count == 1000)
            #expect(fixture.requests("/a.mp4") == 1)
        }
    }
}
