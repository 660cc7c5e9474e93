import TestParts
import Testing
import TieredCacheTesting

@testable import TieredCacheCLI

/// `--policy`.
@Suite("get: policies", .tags(.realTime), .timeLimit(.minutes(10)))
struct GetPolicyTests {
    @Test("cache-only never asks: 66 for what is not stored")
    func cacheOnlyMiss() async throws {
        try await Workplace.with { place in
            place.origin.serveFresh("/a", length: 1000)
            let outcome = try await place.get("/a", into: "a", "--policy", "cache-only")
            outcome.expectFailure(66, place.origin.url("/a"))
            #expect(place.origin.log.exchanges.isEmpty)
            #expect(!place.files.names.contains("a"))
        }
    }

    @Test("cache-only of a part is 66 unless the range asked for is stored")
    func cacheOnlyPart() async throws {
        try await Workplace.with { place in
            place.origin.serveFresh("/a", length: 1_000_000)
            let body = try #require(place.origin.resource("/a")?.generatedBody)
            let url = place.origin.url("/a")
            try await place.run("get", url, "--range", "65536-196607").expectDone()
            try await place.run("get", url, "--policy", "cache-only").expectFailure(66, url)
            for range in ["0-10", "196600-196610", "-5", "65536-"] {
                let outcome = try await place.run(
                    "get",
                    url,
                    "--policy",
                    "cache-only",
                    "--range=\(range)"
                )
                outcome.expectFailure(66, url)
                #expect(outcome.output.isEmpty)
            }
            let stored = try await place.run(
                "get",
                url,
                "--policy",
                "cache-only",
                "--range",
                "70000-196607"
            )
            stored.expectDone()
            #expect(firstDifference(stored.output, body.bytes(in: 70_000..<196_608)) == nil)
        }
    }

    @Test(
        "cache-else-load and cache-only use a response of any age",
        arguments: ["max-age=0", "no-cache"]
    )
    func anyAge(cacheControl: String) async throws {
        try await Workplace.with { place in
            place.origin.serve("/a", .generated(length: 100_000, cacheControl: cacheControl))
            let url = place.origin.url("/a")
            try await place.get("/a", into: "a", "--policy", "cache-else-load")
                .expectReport(url, source: "origin", fromOrigin: 100_000)
            place.origin.update("/a") { $0.version = 2 }
            for policy in ["cache-else-load", "cache-only"] {
                let outcome = try await place.get("/a", into: "a", "--policy", policy)
                outcome.expectDone()
                outcome.expectReport(url, source: "disk", fromCache: 100_000)
            }
            #expect(place.origin.log.exchanges.count == 1)
        }
    }

    @Test("cache-else-load completes a part of any age")
    func completesPart() async throws {
        try await Workplace.with { place in
            place.origin.serve("/a", .generated(length: 400_000, cacheControl: "max-age=0"))
            try await place.get("/a", into: "a", "--range", "0-131071").expectDone()
            let whole = try await place.get("/a", into: "a", "--policy", "cache-else-load")
            whole.expectReport(
                place.origin.url("/a"),
                source: "origin",
                fromCache: 131_072,
                fromOrigin: 268_928
            )
            #expect(try place.file("a", equals: "/a"))
        }
    }

    @Test("reload fetches everything and replaces what is stored")
    func reload() async throws {
        try await Workplace.with { place in
            place.origin.serveFresh("/a", length: 100_000)
            try await place.get("/a", into: "a")
            place.origin.update("/a") { $0.version = 2 }
            let url = place.origin.url("/a")
            let reloaded = try await place.get("/a", into: "a", "--policy", "reload")
            reloaded.expectReport(url, source: "origin", fromOrigin: 100_000)
            #expect(try place.file("a", equals: "/a", version: 2))
            try await place.get("/a", into: "a").expectReport(
                url,
                source: "disk",
                fromCache: 100_000
            )
            #expect(try place.file("a", equals: "/a", version: 2))
            #expect(place.origin.log.exchanges.count == 2)
        }
    }

    @Test("What is marked no-store is delivered and not stored")
    func noStore() async throws {
        try await Workplace.with { place in
            place.origin.serve("/a", .generated(length: 100_000, cacheControl: "no-store"))
            try await place.get("/a", into: "a").expectDone()
            #expect(try place.file("a", equals: "/a"))
            try await place.get("/a", into: "a", "--policy", "cache-only").expectFailure(66)
            #expect(try await place.run("list").lines.isEmpty)
        }
    }
}
