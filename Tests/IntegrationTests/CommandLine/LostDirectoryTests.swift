import FoundationEssentials
import HTTPTypes
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

/// Directories that are removed under the program, or are not what they should be.
@Suite("Lost directories", .tags(.realTime), .timeLimit(.minutes(10)))
struct LostDirectoryTests {
    /// Gets a URL with curl.
    ///
    /// - Returns: the body and what `Cache-Status` says.
    private func get(_ url: String) async throws -> (body: [UInt8], status: String) {
        let result = try await Subprocess.run(
            .name("curl"),
            arguments: ["-sS", "--noproxy", "*", "-w", "%{stderr}%header{cache-status}", url],
            output: .bytes(limit: 64 << 20),
            error: .string(limit: 1 << 20)
        )
        #expect(result.terminationStatus == .exited(0), "\(result.standardError)")
        return (result.standardOutput, result.standardError)
    }

    private func isHit(_ status: String) -> Bool { status.contains("; hit") }

    private func isStored(_ status: String) -> Bool { status.contains("; stored") }

    enum Removal: CaseIterable {
        case root, content, entries, lock

        func perform(at cache: FilePath) throws {
            let files = FileManager.default
            switch self {
            case .root: try files.removeItem(atPath: cache.string)
            case .content:
                for name in try files.contentsOfDirectory(atPath: cache.string) {
                    try files.removeItem(atPath: cache.appending(name).string)
                }
            case .entries: try files.removeItem(atPath: cache.appending("entries").string)
            case .lock: try files.removeItem(atPath: cache.appending("LOCK").string)
            }
        }
    }

    @Test(
        "A serving program whose directory is removed stores what comes next, and says so",
        arguments: [true, false],
        Removal.allCases
    )
    func served(isReverse: Bool, removal: Removal) async throws {
        try await Workplace.with { place in
            for path in ["/old", "/small", "/large"] {
                place.origin.serveFresh(path, length: path == "/small" ? 100 : 300_000)
            }
            let origin = "http://127.0.0.1:\(place.origin.port)"
            let arguments = isReverse ? ["--origin", origin] : []
            try await place.serve(arguments) { server in
                let base =
                    isReverse
                    ? "http://127.0.0.1:\(server.port)"
                    : "\(server.base)http/127.0.0.1:\(place.origin.port)"
                _ = try await get(base + "/old")
                try removal.perform(at: place.cache)
                for path in ["/small", "/large"] {
                    let expected = try #require(place.origin.resource(path)?.generatedBody)
                    let first = try await get(base + path)
                    #expect(firstDifference(first.body, expected.bytes()) == nil)
                    #expect(isStored(first.status), "\(first.status)")
                    let asked = place.exchanges(path).count
                    let second = try await get(base + path)
                    #expect(firstDifference(second.body, expected.bytes()) == nil)
                    #expect(isHit(second.status), "\(second.status)")
                    #expect(place.exchanges(path).count == asked)
                }
            }
            let listed = try await place.run("list", "--json")
            listed.expectDone()
            #expect(listed.text.contains("/small") && listed.text.contains("/large"))
            try await place.run("verify").expectDone()
        }
    }

    @Test("Where LOCK is removed, a second program owns the directory and the first is its guest")
    func twoPrograms() async throws {
        try await Workplace.with { place in
            for path in ["/a", "/b", "/c"] { place.origin.serveFresh(path, length: 300_000) }
            let base = "http/127.0.0.1:\(place.origin.port)"
            try await place.serve { first in
                let asked = { place.exchanges("/b").count }
                _ = try await get(first.base + base + "/a")
                try Removal.lock.perform(at: place.cache)
                try await place.serve { second in
                    let other = try await get(second.base + base + "/b")
                    #expect(isStored(other.status))
                    let guest = try await get(first.base + base + "/c")
                    // By the other one.
                    #expect(guest.status.contains("; stored; detail=guest"), "\(guest.status)")
                    #expect(guest.body.count == 300_000)
                    let before = asked()
                    let hit = try await get(first.base + base + "/b")
                    #expect(isHit(hit.status), "\(hit.status)")
                    #expect(asked() == before)
                }
            }
            try await place.run("verify").expectDone()
        }
    }

    @Test("Bytes of unknown length from a far offset are delivered within the limit")
    func farOffset() async throws {
        try await Workplace.with { place in
            let start: Int64 = 1 << 40
            let film = OriginResource.generated(
                length: start + (1 << 20),
                cacheControl: "max-age=60"
            )
            let range = "bytes \(start)-\(start + 131_071)/*"
            place.origin.serve("/film", film, OriginScript(.lying([.contentRange: range])))
            let part = "\(start)-\(start + 131_071)"
            let got = try await place.get(
                "/film",
                into: "part",
                "--range",
                part,
                "--disk-limit",
                "64MiB"
            )
            #expect(got.exitCode == 0, "\(got.error)")
            let expected = film.generatedBody?.bytes(in: start..<start + 131_072)
            #expect(try firstDifference(place.files.bytes("part"), expected) == nil)
            let stats = try await place.run("stats", "--json", "--disk-limit", "64MiB")
            stats.expectDone()
            #expect(try #require(stats.json.integer("bytes")) < 100_000)
        }
    }

    @Test("A disk limit below the smallest one is said, and costs no byte")
    func smallestLimit() async throws {
        try await Workplace.with { place in
            place.origin.serveFresh("/a", length: 1000)
            for limit in ["1", "4096", "8191"] {
                let got = try await place.get("/a", into: "a", "--disk-limit", limit)
                #expect(got.exitCode == 0)
                #expect(try place.file("a", equals: "/a"))
                #expect(got.error.contains("the smallest is 8192"), "\(got.error)")
                #expect(!place.files.names.contains("cache"))
            }
            let stored = try await place.get("/a", into: "a", "--disk-limit", "8192", "--pin")
            stored.expectFailure(74, "limit")
            try await place.get("/a", into: "a", "--disk-limit", "64KiB").expectDone()
            let prefetched = try await place.run(
                "prefetch",
                place.origin.url("/a"),
                "--disk-limit",
                "4096"
            )
            prefetched.expectFailure(64, "the smallest is 8192")
        }
    }

    @Test(
        "Whatever stands in the place of a hint, the program stores, and counts it not",
        arguments: ["INDEX", "STATS", "EVENTS", "PROXY"],
        [true, false]
    )
    func oddHints(name: String, isDirectory: Bool) async throws {
        try await Workplace.with { place in
            for path in ["/a", "/b"] { place.origin.serveFresh(path, length: 100_000) }
            try await place.get("/a", into: "a").expectDone()
            let hint = place.cache.appending(name).string
            if FileManager.default.fileExists(atPath: hint) {
                try FileManager.default.removeItem(atPath: hint)
            }
            try #require((isDirectory ? mkdir(hint, 0o700) : mkfifo(hint, 0o600)) == 0)
            try await place.get("/b", into: "b", "--pin").expectDone()
            try await place.serve { server in
                let url = server.base + "http/127.0.0.1:\(place.origin.port)/b"
                let answer = try await get(url)
                #expect(isHit(answer.status), "\(answer.status)")
            }
            try await place.run("verify", "--repair").expectDone()
            try await place.run("clear").expectDone()
            #expect(FileManager.default.fileExists(atPath: hint))
        }
    }
}
