import TestParts
import Testing
import TieredCacheTesting

@testable import TieredCacheCLI

/// What is not understood is 64 in one line that leads on; help and version are for standard
/// output.
@Suite("Usage", .tags(.realTime), .timeLimit(.minutes(10)))
struct UsageTests {
    private static let url = "http://127.0.0.1:9/a"

    @Test(
        "Wrong arguments",
        arguments: [
            ["get"], ["get", url, url], ["get", url, "--nonsense"], ["gett", url], ["prefetch"],
            ["get", url, "--policy", "sometimes"], ["get", url, "--output"],
            ["get", url, "--output", ""], ["get", url, "--retries", "0"],
            ["get", url, "--retries", "-1"], ["get", url, "--timeout", "0"],
            ["get", url, "--timeout", "nan"], ["get", url, "--timeout", "soon"],
            ["prefetch", url, "--bytes", "0"], ["prefetch", url, "--bytes", "-5"],
            ["prefetch", url, "--bytes", "many"], ["show"], ["path"], ["remove"], ["trim"],
            ["trim", "--to", "x"], ["trim", "--to", "-1"], ["stats", "extra"], ["list", "--jsn"],
            ["stats", "--log-level", "loud"], ["show", url, url], ["path", url, url],
        ]
    )
    func wrong(arguments: [String]) async throws {
        try await Workplace.with { place in
            let outcome = try await place.run(arguments)
            outcome.expectFailure(64, "--help")
            #expect(outcome.output.isEmpty)
            #expect(!place.files.names.contains("cache"))
        }
    }

    @Test(
        "A SIZE that is none, negative, zero or too large is 64",
        arguments: [
            "", "x", "-1", "0", "0MiB", "1XiB", "1.2.3MiB", "99999999999999999999", "9e9", "1 2",
            "0x10", "MiB", "NaN",
        ]
    )
    func wrongSizes(size: String) async throws {
        try await Workplace.with { place in
            for option in ["--disk-limit", "--memory-limit"] {
                let outcome = try await place.run("stats", "\(option)=\(size)")
                outcome.expectFailure(64, option)
            }
            #expect(!place.files.names.contains("cache"))
        }
    }

    @Test(
        "A SIZE in each of its forms",
        arguments: [
            ("64MiB", 67_108_864), ("2GiB", 2_147_483_648), ("5000000", 5_000_000),
            ("1.5MiB", 1_572_864), ("1GB", 1_000_000_000), ("3m", 3_145_728), ("1TiB", 1 << 40),
            ("8000kB", 8_000_000),
        ] as [(String, Int64)]
    )
    func sizes(size: String, bytes: Int64) async throws {
        try await Workplace.with { place in
            let outcome = try await place.run("stats", "--json", "--disk-limit", size)
            outcome.expectDone()
            #expect(outcome.json.integer("limit") == bytes)
        }
    }

    @Test("Help and version")
    func help() async throws {
        try await Workplace.with { place in
            let commands = [
                "get", "prefetch", "list", "stats", "show", "path", "verify", "remove", "clear",
                "trim", "demo",
            ]
            let overview = try await place.runPlain(["--help"])
            overview.expectDone()
            for command in commands {
                #expect(overview.text.contains("\n  \(command)"), "\(command)")
                let outcome = try await place.runPlain([command, "--help"])
                outcome.expectDone()
                #expect(outcome.text.contains("tieredcache \(command)"))
                #expect(outcome.text.contains("--directory"))
            }
            #expect(try await place.runPlain(["--version"]).lines.count == 1)
            #expect(place.files.names.isEmpty)
        }
    }

    @Test("A misspelt command or option is answered with the right one")
    func suggestion() async throws {
        try await Workplace.with { place in
            try await place.run("get", Self.url, "--ouput", "a").expectFailure(64, "--output")
            try await place.run("prefecth", Self.url).expectFailure(64, "prefecth", "'prefetch'")
        }
    }
}
