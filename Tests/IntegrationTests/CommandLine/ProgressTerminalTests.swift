import Subprocess
import SystemPackage
import Testing
import TieredCacheTesting

@testable import TieredCacheCLI

#if canImport(Glibc)
import Glibc
#elseif canImport(Darwin)
import Darwin
#endif

/// What a person at a terminal sees; the terminal is that of script(1).
@Suite("get on a terminal", .timeLimit(.minutes(10)))
struct ProgressTerminalTests {
    /// Runs `get` with a terminal for standard error.
    private func watch(
        _ target: String,
        in place: Workplace,
        meanwhile: @escaping (Workplace.Running) async throws -> Void = { _ in }
    ) async throws -> String {
        let words = [
            try Workplace.program.string, "get", place.origin.url(target), "--output",
            place.files.appending("a").string, "--directory", place.cache.string,
        ]
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
            place.origin.serveFresh("/film.mp4", length: 3 << 20, .first(1, first).then(slow))
            gate.open()
            let text = try await watch("/film.mp4", in: place)
            #expect(text.contains("film.mp4: the origin closed the connection too early"))
            #expect(text.contains("trying again"))
            #expect(text.contains("% ["))
            #expect(text.contains("of 3.0 MiB"))
            #expect(text.contains("MiB/s"))
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
}
