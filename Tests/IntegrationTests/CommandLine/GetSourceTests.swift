import HTTPTypes
import TestParts
import Testing
import TieredCacheTesting

@testable import TieredCacheCLI

/// The words and counts of `get --json`.
@Suite("get: sources", .tags(.realTime), .timeLimit(.minutes(10)))
struct GetSourceTests {
    @Test("origin, then disk without a request")
    func disk() async throws {
        try await Workplace.with { place in
            place.origin.serveFresh("/a?b=1", length: 500_000)
            let url = place.origin.url("/a?b=1")
            try await place.get("/a?b=1", into: "a")
                .expectReport(url, source: "origin", fromOrigin: 500_000)
            let again = try await place.get("/a?b=1", into: "a")
            again.expectDone()
            again.expectReport(url, source: "disk", fromCache: 500_000)
            #expect(place.origin.log.exchanges.count == 1)
        }
    }

    @Test("A body that needed one byte from the origin has source origin")
    func partial() async throws {
        try await Workplace.with { place in
            place.origin.serveFresh("/a", length: 500_000)
            let head = try await place.get("/a", into: "head", "--range", "0-131071")
            head.expectReport(
                place.origin.url("/a"),
                status: head.json.integer("status").map { Int($0) } ?? 0,
                source: "origin",
                fromOrigin: 131_072
            )
            let whole = try await place.get("/a", into: "a")
            whole.expectReport(
                place.origin.url("/a"),
                source: "origin",
                fromCache: 131_072,
                fromOrigin: 368_928
            )
            #expect(try place.file("a", equals: "/a"))
        }
    }

    @Test("A 304 delivers what is stored")
    func revalidated() async throws {
        try await Workplace.with { place in
            place.origin.serve("/a", .generated(length: 300_000, cacheControl: "no-cache"))
            try await place.get("/a", into: "a")
            let again = try await place.get("/a", into: "b")
            again.expectDone()
            again.expectReport(place.origin.url("/a"), source: "revalidated", fromCache: 300_000)
            #expect(place.exchanges("/a").map(\.status) == [200, 304])
            #expect(try place.file("b", equals: "/a"))
            place.origin.update("/a") { $0.version = 2 }
            try await place.get("/a", into: "c")
                .expectReport(place.origin.url("/a"), source: "origin", fromOrigin: 300_000)
            #expect(try place.file("c", equals: "/a"))
        }
    }

    @Test("Stale where the origin fails and the rules allow it")
    func stale() async throws {
        try await Workplace.with { place in
            let resource = OriginResource.generated(
                length: 70_000,
                cacheControl: "max-age=0, stale-if-error=600"
            )
            place.origin.serve("/a", resource, .first(1, .faithful).then(.status(503)))
            try await place.get("/a", into: "a")
            let stale = try await place.get("/a", into: "b", "--retries", "1")
            stale.expectDone()
            stale.expectReport(place.origin.url("/a"), source: "stale", fromCache: 70_000)
        }
    }

    @Test("A download that is cut goes on by itself, and fetches no byte twice but a block's")
    func cut() async throws {
        try await Workplace.with { place in
            let cut = OriginBehaviour.cut(after: 1_000_000, .finish)
            place.origin.serveFresh("/a", length: 2_000_000, .first(1, cut))
            let outcome = try await place.get("/a", into: "a")
            outcome.expectDone()
            outcome.expectReport(place.origin.url("/a"), source: "origin", fromOrigin: 2_000_000)
            #expect(try place.file("a", equals: "/a"))
            #expect(place.exchanges("/a").map(\.status) == [200, 206])
            let again = place.origin.log.bodyBytesWritten(for: "/a") - 2_000_000
            #expect((0...65_536).contains(again))
        }
    }

    @Test("An interrupted download goes on where it stopped")
    func resumed() async throws {
        try await Workplace.with { place in
            let cut = OriginBehaviour.cut(after: 1_000_000, .finish)
            place.origin.serveFresh("/a", length: 2_000_000, .first(1, cut).then(.status(503)))
            try await place.get("/a", into: "a", "--retries", "1").expectFailure(69, "/a")
            place.origin.serveFresh("/a", length: 2_000_000)
            let again = try await place.get("/a", into: "a")
            again.expectDone()
            #expect(again.json.text("source") == "origin")
            #expect(again.json.integer("bytes") == 2_000_000)
            let fromOrigin = try #require(again.json.integer("fromOrigin"))
            #expect(fromOrigin < 1_000_000 + 65_536)
            #expect(try place.file("a", equals: "/a"))
            let second = try #require(place.exchanges("/a").last)
            #expect(second.status == 206)
            #expect(second.fields[HTTPField.Name("If-Range")!] != nil)
        }
    }
}
