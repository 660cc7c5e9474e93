import TestParts
import Testing
import TieredCacheTesting

@testable import TieredCacheCLI

/// A representation that changes while it is delivered.
@Suite("get: change", .tags(.realTime), .timeLimit(.minutes(10)))
struct GetChangeTests {
    /// Ends the first response early, after which the origin has another version.
    private static let changing = OriginScript.first(
        1,
        .faithful.with { $0.interruptions = [(600_000, .changeVersion), (600_000, .cut(.finish))] }
    )

    @Test("Written to FILE, it starts again and is the new one alone")
    func file() async throws {
        try await Workplace.with { place in
            place.origin.serveFresh("/a", length: 1_000_000, Self.changing)
            let outcome = try await place.get("/a", into: "a")
            outcome.expectDone()
            #expect(outcome.json.integer("bytes") == 1_000_000)
            #expect(try place.file("a", equals: "/a", version: 2))
            #expect(place.files.names == ["a", "cache"])
            // What is stored is the new one as well.
            try await place.get("/a", into: "b")
                .expectReport(place.origin.url("/a"), source: "disk", fromCache: 1_000_000)
            #expect(try place.file("b", equals: "/a", version: 2))
        }
    }

    @Test("On standard output, where old bytes are out, it is 69")
    func standardOutput() async throws {
        try await Workplace.with { place in
            place.origin.serveFresh("/a", length: 1_000_000, Self.changing)
            let url = place.origin.url("/a")
            let outcome = try await place.run("get", url)
            outcome.expectFailure(69, url)
            let old = try #require(place.origin.resource("/a")?.bodyOfVersion(1))
            #expect(!outcome.output.isEmpty)
            #expect(old.matches(outcome.output))
            // Another try gets the new one from its first byte.
            let again = try await place.run("get", url)
            again.expectDone()
            #expect(place.origin.resource("/a")?.generatedBody?.matches(again.output) == true)
        }
    }

    @Test(
        "A part stored of an old version is not joined with the new one",
        arguments: [true, false]
    )
    func betweenRuns(honoursIfRange: Bool) async throws {
        try await Workplace.with { place in
            let script = OriginScript(.faithful.with { $0.ignoresConditions = !honoursIfRange })
            place.origin.serveFresh("/a", length: 1_000_000, script)
            try await place.get("/a", into: "part", "--range", "0-400000").expectDone()
            place.origin.update("/a") { $0.version = 2 }
            let outcome = try await place.get("/a", into: "a")
            outcome.expectDone()
            #expect(try place.file("a", equals: "/a", version: 2))
        }
    }

    @Test("A redirect that leads elsewhere between two runs is not gone on with")
    func movedRedirect() async throws {
        try await Workplace.with { place in
            for (path, seed) in [("/v1", 1), ("/v2", 2)] as [(String, UInt64)] {
                place.origin.serveFresh(path, length: 1_000_000, seed: seed)
                // A number of a revision, which both have by chance.
                place.origin.update(path) { $0.entityTag = .custom("\"1\"") }
            }
            place.origin.serve("/latest", OriginScript(.redirect(to: "/v1")))
            try await place.get("/latest", into: "part", "--range", "0-400000").expectDone()
            place.origin.serve("/latest", OriginScript(.redirect(to: "/v2")))
            try await place.get("/latest", into: "a").expectDone()
            #expect(try place.file("a", equals: "/v2"))
            try await place.get("/latest", into: "b").expectDone()
            #expect(try place.file("b", equals: "/v2"))
        }
    }
}
