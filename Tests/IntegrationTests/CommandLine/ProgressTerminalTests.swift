import Subprocess
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

/// What a person at a terminal sees; the terminal is that of script(1).
@Suite("Downloads on a terminal", .tags(.realTime), .timeLimit(.minutes(10)))
struct ProgressTerminalTests {
    /// Runs `get` with a terminal for standard error.
    private func watch(_ target: String, in place: Workplace) async throws -> String {
        let output = place.files.appending("a").string
        return try await watch(["get", place.origin.url(target), "--output", output], in: place)
    }

    /// Runs a command with a terminal for standard error.
    private func watch(
        _ arguments: [String],
        in place: Workplace,
        meanwhile: @escaping (Workplace.Running) async throws -> Void = { _ in }
    ) async throws -> String {
        let words =
            [try Workplace.program.string] + arguments + ["--directory", place.cache.string]
        let script = FilePath("/usr/bin/script")
        try #require(access(script.string, X_OK) == 0, "script(1) is missing; run 'make setup'")
        let command = "stty columns 100; exec " + words.joined(separator: " ")
        let outcome = try await place.runPlain(
            ["-q", "-e", "-c", command, "/dev/null"],
            program: script,
            meanwhile: meanwhile
        )
        return outcome.text
    }

    @Test("A bar with percentage, amount and rate, and sentences for retry and resumption")
    func bar() async throws {
        try await Workplace.with { place in
            let gate = OriginGate()
            let first = OriginBehaviour.cut(after: 1 << 20)
            let slow = OriginBehaviour.throttled(bytesPerSecond: 2 << 20)
            place.origin.serveFresh("/film.mp4", length: 6 << 20, .first(1, first).then(slow))
            gate.open()
            let text = try await watch("/film.mp4", in: place)
            #expect(text.contains("film.mp4: the origin closed the connection too early"))
            #expect(text.contains("trying again"))
            #expect(text.contains("% ["))
            #expect(text.contains("of 6.0 MiB"))
            #expect(text.contains("iB/s"))
            #expect(text.contains(" left"))
            #expect(text.contains("from network") && !text.contains("from disk"))
            #expect(try place.file("a", equals: "/film.mp4"))
            // A second run says where it goes on.
            place.origin.serveFresh("/b", length: 2 << 20)
            try await place.run("prefetch", "--bytes", "1MiB", place.origin.url("/b")).expectDone()
            let second = try await watch("/b", in: place)
            #expect(second.contains("b: going on at"))
            #expect(second.contains("from disk") && second.contains("from network"))
            // A third needs no network.
            let third = try await watch("/b", in: place)
            #expect(third.contains("from disk") && !third.contains("from network"))
        }
    }

    @Test("prefetch and resume show their bytes, and say at the end what they did")
    func several() async throws {
        try await Workplace.with { place in
            let slow = OriginBehaviour.throttled(bytesPerSecond: 2 << 20)
            for target in ["/a.mp4", "/b.mp4"] {
                place.origin.serveFresh(target, length: 1 << 20, OriginScript(slow))
            }
            let urls = [place.origin.url("/a.mp4"), place.origin.url("/b.mp4")]
            let first = try await watch(["prefetch"] + urls, in: place)
            #expect(first.contains("of 2 URLs") && first.contains("MiB/s"))
            #expect(first.contains("2 URLs stored: 2.0 MiB from the network"))
            let again = try await watch(["prefetch"] + urls, in: place)
            #expect(again.contains("2 URLs stored: 0 B from the network, 2.0 MiB stored already"))
            let failing = OriginScript.first(1, .cut(after: 1000)).then(1, .dropped())
            place.origin.serveFresh("/c.mp4", length: 1 << 20, failing)
            let cut = try await place.run(
                "prefetch",
                "--retries",
                "1",
                place.origin.url("/c.mp4")
            )
            cut.expectFailure(69)
            #expect(try await watch(["resume"], in: place).contains("1 download finished"))
        }
    }
}
