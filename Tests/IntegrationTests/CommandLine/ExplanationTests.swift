import FoundationEssentials
import SystemPackage
import TestParts
import Testing
import TieredCacheTesting

@testable import TieredCacheCLI

/// What the tools for people say.
@Suite("Explanations", .tags(.realTime), .timeLimit(.minutes(10)))
struct ExplanationTests {
    /// A pinned film, a head of another, and a prefetched page.
    private func withEntries(_ body: (Workplace) async throws -> Void) async throws {
        try await Workplace.with { place in
            place.origin.serveFresh("/film", length: 300_000)
            place.origin.serveFresh("/head", length: 400_000)
            place.origin.serveFresh("/page", length: 1000)
            try await place.get("/film", into: "film", "--pin").expectDone()
            try await place.get("/head", into: "head", "--range", "0-99999").expectDone()
            try await place.run("prefetch", place.origin.url("/page")).expectDone()
            try await body(place)
        }
    }

    private func paths(_ outcome: ProgramOutcome) -> [String] {
        outcome.lines.compactMap { line in
            JSONFields(line).text("url").map { String($0.suffix(5)) }
        }
    }

    @Test("list sorts and filters")
    func list() async throws {
        try await withEntries { place in
            let cases: [([String], [String])] = [
                ([], ["/film", "/head", "/page"]),
                (["--reverse"], ["/page", "/head", "/film"]),
                (["--sort", "length"], ["/page", "/film", "/head"]),
                (["--sort", "held", "--reverse"], ["/film", "/head", "/page"]),
                (["--filter", "pinned"], ["/film"]),
                (["--filter", "partial"], ["/head"]),
                (["--filter", "prefetched"], ["/page"]),
                (["--filter", "complete", "--sort", "length"], ["/page", "/film"]),
                (["--filter", "complete", "--filter", "pinned"], ["/film"]),
                (["--contains", "/fi"], ["/film"]),
            ]
            for (arguments, expected) in cases {
                let outcome = try await place.run(["list", "--json"] + arguments)
                outcome.expectDone()
                #expect(paths(outcome) == expected, "\(arguments)")
            }
            try await place.run("list", "--sort", "colour").expectFailure(64, "colour")
        }
    }

    @Test("show explains what is stored, how fresh it is and when it would leave")
    func show() async throws {
        try await withEntries { place in
            let head = try await place.run("show", place.origin.url("/head"))
            head.expectDone()
            #expect(head.text.contains("blocks      [#"))
            #expect(head.text.contains("..]"))
            #expect(head.text.contains("freshness   fresh for "))
            #expect(head.text.contains("validator   \""))
            #expect(head.text.contains("class       used"))
            let film = try await place.run("show", place.origin.url("/film"))
            #expect(film.text.contains("[\(String(repeating: "#", count: 50))]"))
            #expect(film.text.contains("class       pinned"))
            #expect(film.text.contains("lease       none: no other process has it open"))
        }
    }

    @Test(
        "verify names what is damaged, missing, orphaned and not ours, and repairs all but the last"
    )
    func verify() async throws {
        try await withEntries { place in
            let manager = FileManager.default
            let files = try place.cacheFiles()
            let bodies = files.keys.filter { $0.hasSuffix(".body") }.sorted()
            let record = try #require(
                files.first { $0.key.hasSuffix(".record") && $0.value.count < 3000 }
            )
            try #require(bodies.count == 2)
            var damaged = try #require(files[bodies[0]])
            damaged[5] ^= 0xFF
            try damaged.write(to: URL(filePath: place.cache.appending(bodies[0]).string))
            try manager.removeItem(atPath: place.cache.appending(bodies[1]).string)
            let orphan = bodies[0].dropLast(21) + "0123456789abcdef.body"
            for name in [String(orphan), "entries/notes.txt", "mine"] {
                try Data([1]).write(to: URL(filePath: place.cache.appending(name).string))
            }
            _ = record
            let found = try await place.run("verify")
            #expect(found.exitCode == 74)
            for word in ["damaged  ", "missing  ", "orphaned ", "not ours "] {
                #expect(found.lines.contains { $0.hasPrefix(word) }, "\(word): \(found.text)")
            }
            let repaired = try await place.run("verify", "--repair")
            #expect(repaired.exitCode == 0, "\(repaired.text) \(repaired.error)")
            let again = try await place.run("verify")
            again.expectDone()
            #expect(again.lines.count == 3, "\(again.text)")
            #expect(manager.fileExists(atPath: place.cache.appending("mine").string))
            #expect(manager.fileExists(atPath: place.cache.appending("entries/notes.txt").string))
        }
    }

    @Test("a miss is explained in the log, without its query")
    func log() async throws {
        try await Workplace.with { place in
            place.origin.serveFresh("/page?secret=1", length: 1000)
            let outcome = try await place.get("/page?secret=1", into: "a", "--log-level", "debug")
            #expect(outcome.exitCode == 0)
            #expect(outcome.error.contains("lookup missed"))
            #expect(outcome.error.contains("absent"))
            #expect(!outcome.error.contains("secret"))
        }
    }
}
