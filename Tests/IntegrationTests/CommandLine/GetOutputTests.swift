import FoundationEssentials
import Subprocess
import SystemPackage
import TestParts
import Testing
import TieredCacheTesting

@testable import TieredCacheCLI

/// Where the body goes, and what becomes of FILE.
@Suite("get: output", .tags(.realTime), .timeLimit(.minutes(10)))
struct GetOutputTests {
    @Test("The body goes to standard output, and JSON to standard error", arguments: [true, false])
    func standardOutput(named: Bool) async throws {
        try await Workplace.with { place in
            place.origin.serveFresh("/a", length: 200_000)
            let url = place.origin.url("/a")
            let plain = try await place.run(["get", url] + (named ? ["--output", "-"] : []))
            plain.expectDone()
            #expect(place.origin.resource("/a")?.generatedBody?.matches(plain.output) == true)
            #expect(plain.output.count == 200_000)
            let told = try await place.run(["get", url, "--json"] + (named ? ["-o", "-"] : []))
            #expect(told.output == plain.output)
            #expect(told.errorLines.count == 1)
            #expect(told.errorJSON.text("source") == "disk")
            #expect(told.errorJSON.integer("bytes") == 200_000)
        }
    }

    @Test("FILE is complete, and nothing stays beside it")
    func file() async throws {
        try await Workplace.with { place in
            place.origin.serveFresh("/a", length: 3_000_000)
            try place.files.makeDirectory("out")
            let outcome = try await place.get("/a", into: "out/a")
            outcome.expectDone()
            outcome.expectReport(place.origin.url("/a"), source: "origin", fromOrigin: 3_000_000)
            #expect(outcome.lines.count == 1)
            let out = place.files.appending("out").string
            #expect(try FileManager.default.contentsOfDirectory(atPath: out) == ["a"])
            let body = try #require(place.origin.resource("/a")?.generatedBody)
            #expect(try place.files.file("out/a", equals: body))
            let silent = try await place.run(
                "get",
                place.origin.url("/a"),
                "-o",
                place.files.appending("b").string,
                "--quiet"
            )
            silent.expectDone()
            #expect(silent.output.isEmpty)
        }
    }

    @Test("A file that was there is replaced, and kept until the new one is complete")
    func replaced() async throws {
        try await Workplace.with { place in
            let gate = OriginGate()
            place.origin.serveFresh(
                "/a",
                length: 1_000_000,
                .first(1, .wait(for: gate, after: 500_000))
            )
            try place.files.makeDirectory("out")
            try place.files.write("old", to: "out/a")
            let outcome = try await place.get("/a", into: "out/a") { _ in
                await place.origin.waitUntil { $0.bodyBytesWritten >= 500_000 }
                let kept = try place.files.read("out/a")
                #expect(kept == "old")
                gate.open()
            }
            outcome.expectDone()
            let body = try #require(place.origin.resource("/a")?.generatedBody)
            #expect(try place.files.file("out/a", equals: body))
            let out = place.files.appending("out").string
            #expect(try FileManager.default.contentsOfDirectory(atPath: out) == ["a"])
        }
    }

    @Test("Where too few files may be open, one line says so; a limit that may be raised is raised")
    func openFiles() async throws {
        try await Workplace.with { place in
            place.origin.serveFresh("/a", length: 1000)
            let get = "exec '\(try Workplace.program)' get '\(place.origin.url("/a"))' --output a"
            let words = get + " --directory cache"
            for limit in [12, 16, 24] {
                let few = try await place.runPlain(
                    ["-c", "ulimit -n \(limit); \(words)"],
                    program: "/bin/sh"
                )
                few.expectFailure(74, "only \(limit) files may be open")
                #expect(few.error.contains("ulimit -n "))
            }
            #expect(place.origin.log.exchanges.isEmpty)
            try await place.runPlain(["-c", "ulimit -S -n 16; \(words)"], program: "/bin/sh")
                .expectDone()
            #expect(try place.file("a", equals: "/a"))
        }
    }

    @Test("A failed download leaves FILE as it was and nothing beside it")
    func failed() async throws {
        try await Workplace.with { place in
            place.origin.serveFresh(
                "/a",
                length: 1_000_000,
                .first(1, .cut(after: 100)).then(.dropped())
            )
            place.origin.serve("/gone", OriginScript(.status(410)))
            try place.files.makeDirectory("out")
            try place.files.write("old", to: "out/old")
            for name in ["old", "new"] {
                let cut = try await place.get("/a", into: "out/\(name)", "--retries", "1")
                cut.expectFailure(69, "/a")
                #expect(cut.output.isEmpty)
                let gone = try await place.get("/gone", into: "out/\(name)")
                gone.expectFailure(69, "/gone", "410")
            }
            let out = place.files.appending("out").string
            #expect(try FileManager.default.contentsOfDirectory(atPath: out) == ["old"])
            #expect(try place.files.read("out/old") == "old")
        }
    }

    @Test(
        "A FILE that cannot be written ends with 74 before anything is fetched",
        arguments: ["missing/a", "directory", "file/a", "/proc/nothing/a", "/dev/null/a"]
    )
    func unwritable(name: String) async throws {
        try await Workplace.with { place in
            place.origin.serveFresh("/a", length: 1000)
            try place.files.makeDirectory("directory")
            try place.files.write("x", to: "file")
            let file = name.hasPrefix("/") ? name : place.files.appending(name).string
            let outcome = try await place.run("get", place.origin.url("/a"), "--output", file)
            outcome.expectFailure(74, file)
            #expect(place.origin.log.exchanges.isEmpty)
        }
    }

    @Test("What is not a regular file is written directly; a full device is 74")
    func devices() async throws {
        try await Workplace.with { place in
            place.origin.serveFresh("/a", length: 300_000)
            let url = place.origin.url("/a")
            try await place.run("get", url, "--output", "/dev/null").expectDone()
            try await place.run("get", url, "--output", "/dev/full").expectFailure(74, "/dev/full")
        }
    }

    @Test("A closed standard output fails, and no file of the cache takes its place")
    func closedOutput() async throws {
        try await Workplace.with { place in
            place.origin.serveFresh("/a", length: 1_000_000)
            let outcome = try await place.runPlain(
                ["-c", "exec \"$@\" >&-", "sh", try Workplace.program.string, "get"]
                    + [place.origin.url("/a"), "--directory", place.cache.string],
                program: "/bin/sh"
            )
            outcome.expectFailure(74, "standard output")
            try await place.run("verify").expectDone()
            let checked = try await place.get("/a", into: "a")
            checked.expectDone()
            #expect(try place.file("a", equals: "/a"))
        }
    }

    @Test("A name that ends with a slash is no file")
    func slash() async throws {
        try await Workplace.with { place in
            place.origin.serveFresh("/a", length: 1000)
            let slash = place.files.appending("b").string + "/"
            let outcome = try await place.run("get", place.origin.url("/a"), "--output", slash)
            outcome.expectFailure(74, "b/", "directory")
            #expect(!place.files.names.contains("b"))
            #expect(place.exchanges("/a").isEmpty)
        }
    }

    @Test("Bytes that are no text name no file and no URL: 64")
    func notText() async throws {
        try await Workplace.with { place in
            place.origin.serveFresh("/a", length: 1000)
            let outcome = try await place.runPlain(
                ["-c", "exec \"$0\" get \"$1\" --output \"$(printf 'a\\377')\""]
                    + [try Workplace.program.string, place.origin.url("/a")],
                program: "/bin/sh"
            )
            outcome.expectFailure(64, "argument 4 is not UTF-8")
            #expect(place.exchanges("/a").isEmpty)
        }
    }

    @Test("An empty body makes an empty file")
    func empty() async throws {
        try await Workplace.with { place in
            place.origin.serveFresh("/a", length: 0)
            for source in ["origin", "disk"] {
                let outcome = try await place.get("/a", into: "a")
                outcome.expectDone()
                outcome.expectReport(place.origin.url("/a"), source: source)
                #expect(try place.files.read("a").isEmpty)
            }
        }
    }
}
