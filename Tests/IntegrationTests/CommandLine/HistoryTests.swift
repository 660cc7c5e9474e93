import SystemPackage
import TestParts
import Testing
import TieredCacheTesting

@testable import TieredCacheCLI

/// What is told of a directory's past, over several runs of the program.
@Suite("stats and events", .tags(.realTime), .timeLimit(.minutes(10)))
struct HistoryTests {
    /// A page that is missed, hit, gone stale and come again; another that is evicted; one removed.
    private func withPast(_ body: (Workplace) async throws -> Void) async throws {
        try await Workplace.with { place in
            place.origin.serveFresh("/page?secret=1", length: 1000)
            place.origin.serveFresh("/film", length: 200_000)
            place.origin.serve("/stale", .generated(length: 500, cacheControl: "max-age=0"))
            try await place.get("/page?secret=1", into: "a").expectDone()
            try await place.get("/page?secret=1", into: "b").expectDone()
            try await place.get("/stale", into: "c").expectDone()
            place.origin.update("/stale") { $0.version += 1 }
            try await place.get("/stale", into: "d").expectDone()
            try await place.get("/film", into: "e").expectDone()
            try await place.run("remove", place.origin.url("/film")).expectDone()
            try await place.run("trim", "--to", "0").expectDone()
            try await place.get("/page?secret=1", into: "f").expectDone()
            try await body(place)
        }
    }

    @Test("stats: hit ratios and why entries left, over all runs")
    func stats() async throws {
        try await withPast { place in
            let stats = try await place.run("stats", "--json")
            stats.expectDone()
            #expect(stats.text.contains(#""requests":{"disk":1,"memory":0,"miss":5},"#))
            #expect(stats.text.contains(#""hitRatio":0.1667,"#))
            #expect(
                stats.text.contains(
                    #""bodyBytes":{"disk":1000,"memory":0,"origin":203000},"byteHitRatio":0.0049"#
                )
            )
            #expect(stats.text.contains(#""misses":{"absent":4,"#))
            #expect(stats.text.contains(#","stale":1,"variant":0},"#))
            #expect(
                stats.text.contains(
                    #""left":{"corrupted":0,"evicted":2,"expired":1,"removed":1,"replaced":0},"#
                )
            )
            #expect(stats.json.integer("bytes") == Int64(try place.allocatedBytes()))
            let plain = try await place.run("stats")
            plain.expectDone()
            #expect(plain.text.contains("requests    6: memory 0.0 %, disk 16.7 %, missed 83.3 %"))
            #expect(plain.text.contains("left        expired 1, evicted 2, replaced 0, removed 1"))
        }
    }

    @Test("events: why a page is missed again, without its query")
    func events() async throws {
        try await withPast { place in
            let url = place.origin.url("/page?secret=1")
            let events = try await place.run("events", url, "--json")
            events.expectDone()
            let found = events.lines.map { line in
                let fields = JSONFields(line)
                return "\(fields.text("event") ?? "") \(fields.text("reason") ?? "")"
            }
            #expect(
                found == [
                    "missed absent", "stored null", "evicted trimmed", "missed absent",
                    "stored null",
                ]
            )
            let all = try await place.run("events")
            all.expectDone()
            #expect(all.lines.count > found.count)
            #expect(all.lines.contains { $0.contains("expired") && $0.hasSuffix("/stale") })
            #expect(all.lines.contains { $0.contains("removed") && $0.hasSuffix("/film") })
            #expect(!all.text.contains("secret"))
            try await place.run("events", "--since", "0s").expectDone()
            try await place.run("events", "--since", "soon").expectFailure(64, "--since")
            let verify = try await place.run("verify")
            verify.expectDone()
            #expect(verify.lines.count == 1, "\(verify.text)")
            #expect(
                try place.cacheFiles(occupancy: "secret").allSatisfy { $0.hasSuffix(".record") }
            )
        }
    }

    @Test("sums that are damaged are said to be, and begin again")
    func damaged() async throws {
        try await withPast { place in
            let path = place.cache.appending("STATS")
            let file = try FileDescriptor.open(path, .writeOnly)
            try file.closeAfter { _ = try file.writeAll(toAbsoluteOffset: 40, [1, 2, 3, 4]) }
            let stats = try await place.run("stats")
            #expect(stats.exitCode == 0 && stats.error.contains("are damaged"))
            try await place.get("/film", into: "g").expectDone()
            let again = try await place.run("stats", "--json")
            #expect(again.text.contains(#""requests":{"disk":0,"memory":0,"miss":1}"#))
            #expect(try await place.run("events").text.contains("corrupted statistics"))
        }
    }
}
