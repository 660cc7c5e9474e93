import SystemPackage
import TestParts
import Testing
import TieredCacheTesting

@testable import TieredCacheCLI

/// `remove`, `clear`, `trim`.
@Suite("remove, clear, trim", .tags(.realTime), .timeLimit(.minutes(10)))
struct RemovalTests {
    private func urls(_ place: Workplace) async throws -> [String] {
        try await place.run("list", "--json").lines.compactMap { JSONFields($0).text("url") }
    }

    @Test("remove takes what is named, and what is not stored is 0")
    func remove() async throws {
        try await Workplace.with { place in
            for target in ["/a", "/b", "/c"] {
                place.origin.serveFresh(target, length: 100_000)
                try await place.get(target, into: "x", "--pin")
            }
            let url = place.origin.url
            try await place.run("remove", url("/none")).expectDone()
            try await place.run("remove", url("/a"), url("/none"), url("/c#x")).expectDone()
            #expect(try await urls(place) == [url("/b")])
            try await place.run("get", url("/a"), "--policy", "cache-only").expectFailure(66)
        }
    }

    @Test("clear removes pinned entries too; files that are not ours stay")
    func clear() async throws {
        try await Workplace.with { place in
            try await place.run("clear").expectDone()
            for (target, length) in [("/a", 1000), ("/b", 1_000_000)] as [(String, Int64)] {
                place.origin.serveFresh(target, length: length)
                try await place.get(target, into: "x", "--pin")
            }
            let foreign = [
                "cache/notes.txt", "cache/entries/notes.txt", "cache/staging/notes.txt",
                "cache/entries/ab.record",
            ]
            for name in foreign { try place.files.write("mine", to: name) }
            try place.files.makeDirectory("cache/entries/zz")
            try place.files.write("mine", to: "cache/entries/zz/film.body")
            try await place.run("clear").expectDone()
            let stats = try await place.run("stats", "--json")
            #expect(stats.json.integer("entries") == 0)
            try await place.run("trim", "--to", "0").expectDone()
            for name in foreign + ["cache/entries/zz/film.body"] {
                #expect(try place.files.read(name) == "mine", "\(name)")
            }
            #expect(
                try place.cacheFiles().keys.filter { $0.hasSuffix(".record") } == [
                    "entries/ab.record"
                ]
            )
        }
    }

    @Test("trim reaches the size with what was used least recently, and takes no more than that")
    func trim() async throws {
        try await Workplace.with { place in
            for target in ["/a", "/b", "/c", "/d"] {
                place.origin.serveFresh(target, length: 1_000_000)
                try await place.get(target, into: "x")
            }
            let outcome = try await place.run("trim", "--to", "2500000")
            outcome.expectDone()
            #expect(outcome.output.isEmpty)
            let left = try #require(try await place.run("stats", "--json").json.integer("bytes"))
            #expect(left <= 2_500_000)
            #expect(try place.allocatedBytes() <= 2_500_000)
            let expected = ["/c", "/d"].map(place.origin.url)
            #expect(try await urls(place).sorted() == expected)
        }
    }

    @Test("trim spares pins, says so where they alone exceed the size, and is done")
    func trimPins() async throws {
        try await Workplace.with { place in
            for (target, options) in [("/a", ["--pin"]), ("/b", [])] {
                place.origin.serveFresh(target, length: 1_000_000)
                try await place.run(["get", place.origin.url(target), "-o", "/dev/null"] + options)
            }
            let outcome = try await place.run("trim", "--to", "1000")
            #expect(outcome.exitCode == 0)
            #expect(outcome.errorLines.count == 1)
            #expect(outcome.error.contains("pinned"))
            #expect(try await urls(place) == [place.origin.url("/a")])
            let enough = try await place.run("trim", "--to", "10MiB")
            enough.expectDone()
        }
    }

    @Test("The limit holds while a larger set is fetched, and pins survive it")
    func limit() async throws {
        try await Workplace.with { place in
            for index in 0..<6 {
                let target = "/\(index)"
                place.origin.serveFresh(target, length: 1_000_000, seed: UInt64(index))
                let pin = index == 0 ? ["--pin"] : []
                let outcome = try await place.run(
                    ["get", place.origin.url(target), "-o", place.files.appending("x").string]
                        + ["--disk-limit", "3MiB"] + pin
                )
                outcome.expectDone()
                #expect(try place.file("x", equals: target))
                #expect(try place.allocatedBytes() <= 3 << 20)
            }
            let stored = try await urls(place)
            #expect(stored.contains(place.origin.url("/0")))
            #expect(stored.contains(place.origin.url("/5")))
        }
    }
}
