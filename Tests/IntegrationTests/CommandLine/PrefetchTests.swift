import HTTPTypes
import TestParts
import Testing
import TieredCacheTesting

@testable import TieredCacheCLI

/// `prefetch`.
@Suite("prefetch", .tags(.realTime), .timeLimit(.minutes(10)))
struct PrefetchTests {
    @Test("Fetches for later; --json prints get's line for each URL")
    func whole() async throws {
        try await Workplace.with { place in
            place.origin.serveFresh("/a", length: 700_000)
            let url = place.origin.url("/a")
            let outcome = try await place.run("prefetch", url, "--json")
            outcome.expectDone()
            outcome.expectReport(url, source: "origin", fromOrigin: 700_000)
            let again = try await place.run("prefetch", url, "--json")
            again.expectReport(url, source: "disk", fromCache: 700_000)
            try await place.get("/a", into: "a").expectReport(
                url,
                source: "disk",
                fromCache: 700_000
            )
            let silent = try await place.run("prefetch", url)
            silent.expectDone()
            #expect(silent.output.isEmpty)
        }
    }

    @Test("Several URLs, some failing: 69, the others are stored")
    func several() async throws {
        try await Workplace.with { place in
            let good = (0..<8).map { "/\($0)" }
            for target in good { place.origin.serveFresh(target, length: 100_000) }
            place.origin.serve("/gone", OriginScript(.status(404)))
            let url = place.origin.url
            let targets = ["/0", "/gone", "/1", "/2", "/3", "/4", "/5", "/6", "/7"]
            let outcome = try await place.run(["prefetch", "--json"] + targets.map(url))
            #expect(outcome.exitCode == 69)
            #expect(outcome.error.contains(url("/gone")))
            #expect(outcome.error.contains("404"))
            let told = Set(outcome.lines.compactMap { JSONFields($0).text("url") })
            #expect(told.isSuperset(of: good.map(url)))
            for target in good {
                let stored = try await place.get(target, into: "x", "--policy", "cache-only")
                stored.expectDone()
            }
            #expect(place.origin.log.openResponsesHighWaterMark <= 6)
        }
    }

    @Test("The same URL twice is fetched once")
    func twice() async throws {
        try await Workplace.with { place in
            place.origin.serveFresh("/a", length: 500_000)
            let url = place.origin.url("/a")
            let outcome = try await place.run("prefetch", url, url, url + "#x", "--json")
            outcome.expectDone()
            #expect(outcome.lines.count == 3)
            #expect(place.origin.log.bodyBytesWritten == 500_000)
        }
    }

    @Test("What may not be stored fails, since storing was the purpose")
    func notStorable() async throws {
        try await Workplace.with { place in
            place.origin.serve("/a", .generated(length: 1000, cacheControl: "no-store"))
            let outcome = try await place.run("prefetch", place.origin.url("/a"))
            #expect(outcome.exitCode == 69 || outcome.exitCode == 74)
            #expect(outcome.errorLines.count == 1)
        }
    }

    @Test(
        "--bytes takes the head and no more than 1.5 MiB beside it",
        arguments: [1, 65_536, 100_000, 4 << 20]
    )
    func head(bytes: Int64) async throws {
        try await Workplace.with { place in
            place.origin.serveFresh("/a", length: 32 << 20)
            let url = place.origin.url("/a")
            let outcome = try await place.run("prefetch", url, "--bytes", "\(bytes)", "--json")
            outcome.expectDone()
            #expect(place.origin.log.bodyBytesWritten <= bytes + 1_572_864)
            let range = "0-\(bytes - 1)"
            let stored = try await place.get(
                "/a",
                into: "a",
                "--policy",
                "cache-only",
                "--range",
                range
            )
            stored.expectDone()
            #expect(stored.json.integer("bytes") == bytes)
        }
    }

    @Test("A film with moov at its end is ready to start", arguments: [true, false])
    func movieBox(isLarge: Bool) async throws {
        try await Workplace.with { place in
            let film = Self.film(mediaBytes: 12 << 20, movieBytes: isLarge ? 900_000 : 5000)
            var resource = OriginResource(.bytes(film), contentType: "video/mp4")
            resource.fields[.cacheControl] = "max-age=60"
            place.origin.serve("/film.mp4", resource)
            let url = place.origin.url("/film.mp4")
            try await place.run("prefetch", url, "--bytes", "256KiB").expectDone()
            let limit: Int64 = 262_144 + 1_572_864
            #expect(place.origin.log.bodyBytesWritten < limit)
            let show = try await place.run("list", "--json")
            #expect(try #require(show.json.integer("held")) < limit)
            let start = (12 << 20) + 40
            for range in ["0-262143", "\(start)-"] {
                let stored = try await place.run(
                    "get",
                    url,
                    "--policy",
                    "cache-only",
                    "--range",
                    range
                )
                stored.expectDone()
                let first = range.hasPrefix("0") ? 0 : start
                #expect(stored.output == Array(film[first..<first + stored.output.count]))
            }
        }
    }

    /// `ftyp`, `mdat`, `moov` with zeros in them; `moov` begins 40 bytes behind the media.
    private static func film(mediaBytes: Int, movieBytes: Int) -> [UInt8] {
        func box(_ type: String, _ payload: Int) -> [UInt8] {
            let size = UInt32(payload + 8).bigEndian
            let head = withUnsafeBytes(of: size) { Array($0) } + Array(type.utf8)
            return head + Array(repeating: UInt8(type.utf8.count * 3), count: payload)
        }
        return box("ftyp", 24) + box("mdat", mediaBytes) + box("moov", movieBytes)
    }
}
