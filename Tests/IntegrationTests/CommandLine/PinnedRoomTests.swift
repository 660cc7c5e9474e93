import HTTPTypes
import Subprocess
import SystemPackage
import TestParts
import Testing
import TieredCacheTesting

@testable import TieredCacheCLI

/// What is pinned takes more than half of the limit, and the origin has something new: both do not
/// fit.
///
/// The new one is delivered, the old one stays, and a command that is to keep the new one says why
/// not.
@Suite("Pinned, and no room for the next", .tags(.realTime), .timeLimit(.minutes(10)))
struct PinnedRoomTests {
    private static let length: Int64 = 3_000_000
    private static let limit = ["--disk-limit", "4MiB"]
    private static let reason = "do not fit beside"

    /// A film that is pinned and stale, something else that is stored, and a new film at the
    /// origin.
    private static func with(_ body: (Workplace) async throws -> Void) async throws {
        try await Workplace.with { place in
            let film = OriginResource.generated(length: length, cacheControl: "max-age=0")
            place.origin.serve("/film", film)
            place.origin.serveFresh("/other", length: 400_000)
            try await get(place, "/film", "--pin").expectDone()
            try await get(place, "/other").expectDone()
            place.origin.update("/film") { $0.version = 2 }
            try await body(place)
            try await expectKept(place)
        }
    }

    private static func get(
        _ place: Workplace,
        _ target: String,
        _ options: String...
    ) async throws -> ProgramOutcome {
        let output = place.files.appending("out").string
        return try await place.run(
            ["get", place.origin.url(target), "--output", output, "--json"] + options + limit
        )
    }

    /// The old film is pinned and whole, and nothing else had to leave for the new one.
    private static func expectKept(_ place: Workplace) async throws {
        for (target, version) in [("/film", 1), ("/other", 1)] {
            try await get(place, target, "--policy", "cache-only").expectDone()
            #expect(try place.file("out", equals: target, version: version))
        }
        let shown = try await place.run("show", place.origin.url("/film"), "--json")
        #expect(shown.json.text("pinned") == "true", "\(shown.text)")
        let verified = try await place.run("verify", "--json")
        #expect(verified.json.integer("damaged") == 0)
    }

    @Test("get delivers the new one", arguments: ["default", "reload"])
    func get(policy: String) async throws {
        try await Self.with { place in
            let outcome = try await Self.get(place, "/film", "--policy", policy)
            outcome.expectDone()
            #expect(try place.file("out", equals: "/film", version: 2))
        }
    }

    @Test("get --pin delivers the new one and says that it is not what is pinned")
    func getPinned() async throws {
        try await Self.with { place in
            let outcome = try await Self.get(place, "/film", "--pin")
            outcome.expectFailure(74, "was delivered", Self.reason, "earlier")
            #expect(try place.file("out", equals: "/film", version: 2))
        }
    }

    @Test("prefetch says why it keeps nothing")
    func prefetch() async throws {
        try await Self.with { place in
            let arguments = ["prefetch", place.origin.url("/film")] + Self.limit
            try await place.run(arguments).expectFailure(74, Self.reason)
        }
    }

    @Test("A proxy delivers the new one, whole and in part", arguments: [true, false])
    func proxied(isReverse: Bool) async throws {
        try await Self.with { place in
            let options = (isReverse ? ["--origin", place.origin.url("")] : []) + Self.limit
            let status = try await place.serve(options) { server in
                let path = isReverse ? "film" : "http/127.0.0.1:\(place.origin.port)/film"
                let film = try #require(place.origin.resource("/film")?.bodyOfVersion(2))
                for range: Range<Int64> in [0..<Self.length, 2_000_000..<2_100_000] {
                    let result = try await Subprocess.run(
                        .name("curl"),
                        arguments: [
                            "-sS", "--noproxy", "*", "-r",
                            "\(range.lowerBound)-\(range.upperBound - 1)", server.base + path,
                        ],
                        output: .bytes(limit: 8 << 20),
                        error: .string(limit: 1 << 20)
                    )
                    #expect(
                        firstDifference(result.standardOutput, film.bytes(in: range)) == nil,
                        "\(range)"
                    )
                }
            }
            #expect(status == .exited(0))
        }
    }
}
