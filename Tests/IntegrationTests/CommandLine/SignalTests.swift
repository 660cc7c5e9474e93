import TestParts
import Testing
import TieredCacheTesting

@testable import TieredCacheCLI

#if canImport(Glibc)
import Glibc
#elseif canImport(Darwin)
import Darwin
#endif

/// SIGINT and SIGTERM: 130, what arrived is kept, the origin's connections are closed.
@Suite("Signals", .tags(.realTime), .timeLimit(.minutes(10)))
struct SignalTests {
    @Test("get keeps what arrived and goes on there", arguments: [SIGINT, SIGTERM])
    func get(signal: Int32) async throws {
        try await Workplace.with { place in
            // More than two sockets hold, so that the program has read some of what was written.
            let (length, pause): (Int64, Int64) = (33 << 20, 32 << 20)
            place.origin.serveFresh("/a", length: length, .first(1, .stall(after: pause)))
            let outcome = try await place.get("/a", into: "a") { running in
                await place.origin.waitUntil { $0.bodyBytesWritten >= pause }
                running.send(signal)
                // That this returns is the proof: the stalled response never ends by itself.
                await place.origin.waitUntil { $0.openConnections == 0 }
            }
            outcome.expectFailure(
                130,
                "interrupted; what arrived is kept",
                "go on with the same command, or 'tieredcache resume'"
            )
            #expect(outcome.output.isEmpty)
            #expect(place.files.names == ["cache"])
            #expect(place.exchanges("/a").map(\.outcome) == [.disconnected])
            let list = try await place.run("list", "--json")
            let stored = list.json.integer("held") ?? 0
            #expect(stored > 0)
            let again = try await place.get("/a", into: "a")
            again.expectReport(
                place.origin.url("/a"),
                source: "origin",
                fromCache: stored,
                fromOrigin: length - stored
            )
            #expect(try place.file("a", equals: "/a"))
        }
    }

    @Test("get ends before the head, and while it waits to try again")
    func early() async throws {
        try await Workplace.with { place in
            let closed = OriginBehaviour.faithful.with { $0.gate = OriginGate() }
            place.origin.serve("/silent", OriginScript(closed))
            place.origin.serve("/busy", OriginScript(.status(503, retryAfter: "600")))
            for target in ["/silent", "/busy"] {
                let outcome = try await place.get(target, into: "a") { running in
                    await place.origin.waitUntil { log in
                        let exchanges = log.exchanges(for: target)
                        let isBusy = exchanges.first?.outcome == .complete
                        return !exchanges.isEmpty && (target == "/silent" || isBusy)
                    }
                    running.send(SIGINT)
                }
                outcome.expectFailure(130)
            }
        }
    }

    @Test("prefetch of many ends as a whole and keeps what arrived")
    func prefetch() async throws {
        try await Workplace.with { place in
            let targets = (0..<10).map { "/\($0)" }
            for target in targets[..<5] { place.origin.serveFresh(target, length: 500_000) }
            for target in targets[5...] {
                let stall = OriginScript(.stall(after: 300_000))
                place.origin.serveFresh(target, length: 500_000, stall)
            }
            let arguments = ["prefetch", "--json"] + targets.map(place.origin.url)
            let outcome = try await place.run(arguments) { running in
                // Six at a time, five of them for good: four have ended once all have begun.
                await place.origin.waitUntil { log in
                    targets.allSatisfy { !log.exchanges(for: $0).isEmpty }
                }
                running.send(SIGTERM)
                await place.origin.waitUntil { $0.openConnections == 0 }
            }
            outcome.expectFailure(130, "interrupted")
            let list = try await place.run("list", "--json").lines.map { JSONFields($0) }
            let complete = targets.filter { target in
                list.contains {
                    $0.text("url") == place.origin.url(target) && $0.text("complete") == "true"
                }
            }
            #expect((4...5).contains(complete.count))
            for target in targets {
                place.origin.serveFresh(target, length: 500_000)
            }
            try await place.run(arguments).expectDone()
            #expect(complete.allSatisfy { place.exchanges($0).count == 1 })
        }
    }
}
