import SystemPackage
import TestParts
import Testing
import TieredCacheTesting

@testable import TieredCacheCLI

#if canImport(Glibc)
import Glibc
#elseif canImport(Darwin)
import Darwin
#endif

/// A second process in a directory that a living one owns.
@Suite("Guests", .tags(.realTime), .timeLimit(.minutes(10)))
struct GuestTests {
    /// Runs `body` while `/held` is stored and a get of `/slow` owns the directory.
    private func withOwner(
        _ body: (Workplace, Workplace.Running) async throws -> Void
    ) async throws {
        try await Workplace.with { place in
            let gate = OriginGate()
            place.origin.serveFresh("/held", length: 200_000)
            place.origin.serveFresh("/new", length: 100_000)
            place.origin.serveFresh(
                "/slow",
                length: 400_000,
                .first(1, .wait(for: gate, after: 200_000))
            )
            try await place.get("/held", into: "held").expectDone()
            let owner = try await place.get("/slow", into: "slow") { owner in
                await place.origin.waitUntil { $0.bodyBytesWritten(for: "/slow") >= 200_000 }
                try await body(place, owner)
                gate.open()
            }
            owner.expectDone()
            #expect(try place.file("slow", equals: "/slow"))
        }
    }

    @Test("get reads hits, and the owner stores what it misses")
    func get() async throws {
        try await withOwner { place, _ in
            let hit = try await place.get("/held", into: "a")
            #expect(hit.exitCode == 0)
            hit.expectReport(place.origin.url("/held"), source: "disk", fromCache: 200_000)
            #expect(try place.file("a", equals: "/held"))
            let new = place.origin.url("/new")
            let miss = try await place.get("/new", into: "b")
            miss.expectDone()
            miss.expectReport(new, source: "origin", fromOrigin: 100_000)
            #expect(try place.file("b", equals: "/new"))
            let second = try await place.get("/new", into: "b")
            second.expectReport(new, source: "disk", fromCache: 100_000)
            #expect(try place.file("b", equals: "/new"))
            #expect(place.exchanges("/new").count == 1)
            let list = try await place.run("list", "--json")
            #expect(list.exitCode == 0)
            #expect(list.text.contains("/new"))
        }
    }

    @Test("get into a file fetches a wrong body once more, as it does alone")
    func wrongBody() async throws {
        try await withOwner { place, _ in
            let wrong = OriginBehaviour.faithful.with {
                $0.rawFieldLines = [
                    "Repr-Digest: sha-256=:47DEQpj8HBSa+/TImW+5JCeuQeRkm5NMpJWZG3hSuFU=:"
                ]
            }
            place.origin.serveFresh("/wrong", length: 100_000, .first(1, wrong))
            try await place.get("/wrong", into: "b").expectDone()
            #expect(try place.file("b", equals: "/wrong"))
        }
    }

    @Test("prefetch is 75 in one line that names the owner, and fetches nothing")
    func prefetch() async throws {
        try await withOwner { place, owner in
            let url = place.origin.url("/new")
            for arguments in [["prefetch", url], ["prefetch", url, url, "--json"]] {
                let outcome = try await place.run(arguments)
                outcome.expectFailure(75, "\(owner.processIdentifier)", place.cache.string)
                #expect(outcome.output.isEmpty)
            }
            #expect(place.exchanges("/new").isEmpty)
        }
    }

    @Test("remove, trim and clear are 74 in one line, and change nothing")
    func manage() async throws {
        try await withOwner { place, owner in
            let stored = place.origin.url("/held")
            for arguments in [["remove", stored], ["trim", "--to", "0"], ["clear"]] {
                try await place.run(arguments)
                    .expectFailure(74, "\(owner.processIdentifier)")
            }
            try await place.run("verify", "--repair")
                .expectFailure(75, "\(owner.processIdentifier)")
            let hit = try await place.get("/held", into: "a", "--policy", "cache-only")
            #expect(hit.exitCode == 0)
        }
    }

    @Test("list, stats, show, path and verify read")
    func inspect() async throws {
        try await withOwner { place, _ in
            let stored = place.origin.url("/held")
            for arguments in [
                ["list", "--json"], ["stats", "--json"], ["show", stored, "--json"],
                ["path", stored],
                ["verify", "--json"],
            ] {
                let outcome = try await place.run(arguments)
                #expect(outcome.exitCode == 0, "\(arguments): \(outcome.error)")
                #expect(outcome.lines.count >= 1)
            }
        }
    }

    @Test("A pin that a guest cannot keep delivers the bytes and is 74")
    func pin() async throws {
        try await withOwner { place, _ in
            let outcome = try await place.run(
                "get",
                place.origin.url("/new"),
                "--pin",
                "-o",
                place.files.appending("b").string
            )
            #expect(outcome.exitCode == 74)
            #expect(try place.file("b", equals: "/new"))
        }
    }

    @Test("An owner that was killed owns nothing")
    func killedOwner() async throws {
        try await Workplace.with { place in
            place.origin.serveFresh("/slow", length: 400_000, .first(1, .stall(after: 200_000)))
            try await place.get("/slow", into: "slow") { owner in
                await place.origin.waitUntil { $0.bodyBytesWritten >= 200_000 }
                owner.send(SIGKILL)
            }
            try await place.run("prefetch", place.origin.url("/slow")).expectDone()
        }
    }
}
