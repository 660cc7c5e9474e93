import TestParts
import Testing
import TieredCacheTesting

@testable import TieredCacheCLI

/// `--range A-B`, `A-`, `--range=-N`.
@Suite("get: ranges", .tags(.realTime), .timeLimit(.minutes(10)))
struct GetRangeTests {
    private static let length: Int64 = 300_000

    @Test(
        "The bytes asked for, from the origin and from the disk",
        arguments: [
            (["--range", "0-0"], 0..<1), (["--range", "0-99"], 0..<100),
            (["--range", "65535-65536"], 65_535..<65_537),
            (["--range=100000-299999"], 100_000..<300_000),
            (["--range", "299999-"], 299_999..<300_000),
            (["--range", "250000-9223372036854775807"], 250_000..<300_000),
            (["--range", "0-"], 0..<300_000), (["--range=-1"], 299_999..<300_000),
            (["--range", "-70000"], 230_000..<300_000), (["--range=-999999999"], 0..<300_000),
        ] as [([String], Range<Int64>)]
    )
    func bytes(options: [String], range: Range<Int64>) async throws {
        try await Workplace.with { place in
            place.origin.serveFresh("/a", length: Self.length)
            let body = try #require(place.origin.resource("/a")?.generatedBody)
            let url = place.origin.url("/a")
            let cold = try await place.run(["get", url] + options)
            cold.expectDone()
            #expect(firstDifference(cold.output, body.bytes(in: range)) == nil)
            let asked = place.origin.log.exchanges.count
            let warm = try await place.run(["get", url, "--json"] + options)
            #expect(firstDifference(warm.output, body.bytes(in: range)) == nil)
            #expect(warm.errorJSON.text("source") == "disk")
            #expect(warm.errorJSON.integer("fromCache") == Int64(range.count))
            #expect(place.origin.log.exchanges.count == asked)
        }
    }

    @Test("A start beyond the end is 69 and writes nothing", arguments: [true, false])
    func beyondEnd(isStored: Bool) async throws {
        try await Workplace.with { place in
            place.origin.serveFresh("/a", length: Self.length)
            if isStored { try await place.get("/a", into: "whole").expectDone() }
            for range in ["300000-", "300000-300001", "9223372036854775806-"] {
                let outcome = try await place.get("/a", into: "a", "--range", range)
                outcome.expectFailure(69, place.origin.url("/a"))
                #expect(!place.files.names.contains("a"))
            }
        }
    }

    @Test("A range of an empty body is 69")
    func emptyBody() async throws {
        try await Workplace.with { place in
            place.origin.serveFresh("/a", length: 0)
            for range in ["--range=0-", "--range=-5", "--range=0-0"] {
                let outcome = try await place.run("get", place.origin.url("/a"), range)
                outcome.expectFailure(69, place.origin.url("/a"))
            }
        }
    }

    @Test(
        "What is no range is 64",
        arguments: ["5", "5-4", "-", "a-b", "-0", "1-2-3", "1-2,4-5", "99999999999999999999-", ""]
    )
    func malformed(range: String) async throws {
        try await Workplace.with { place in
            let outcome = try await place.run("get", place.origin.url("/a"), "--range=\(range)")
            outcome.expectFailure(64, "--range")
            #expect(place.origin.log.exchanges.isEmpty)
        }
    }

    @Test("An origin without ranges still serves one")
    func rangesIgnored() async throws {
        try await Workplace.with { place in
            place.origin.serveFresh("/a", length: Self.length, OriginScript(.ignoringRange))
            let body = try #require(place.origin.resource("/a")?.generatedBody)
            for range in [200_000..<200_100, 0..<10] as [Range<Int64>] {
                let text = "\(range.lowerBound)-\(range.upperBound - 1)"
                let outcome = try await place.run("get", place.origin.url("/a"), "--range", text)
                outcome.expectDone()
                #expect(firstDifference(outcome.output, body.bytes(in: range)) == nil)
            }
        }
    }

    @Test("Ranges in any order make the whole, each block fetched once")
    func assembled() async throws {
        try await Workplace.with { place in
            place.origin.serveFresh("/a", length: 20 * 65_536)
            for first in [10, 0, 5, 15] {
                let range = "\(first * 65_536)-\((first + 5) * 65_536 - 1)"
                try await place.get("/a", into: "part", "--range", range).expectDone()
            }
            let whole = try await place.get("/a", into: "a")
            whole.expectReport(place.origin.url("/a"), source: "disk", fromCache: 20 * 65_536)
            #expect(try place.file("a", equals: "/a"))
            #expect(place.origin.log.bodyBytesWritten(for: "/a") == 20 * 65_536)
        }
    }
}
