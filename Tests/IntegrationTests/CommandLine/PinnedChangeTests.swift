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

/// What is complete and pinned while its origin changes, fails or forbids.
@Suite("Pinned, and the origin changes", .tags(.realTime), .timeLimit(.minutes(10)))
struct PinnedChangeTests {
    private static let length: Int64 = 3_000_000

    /// A film that is pinned, complete and stale.
    private static func with(_ body: (Workplace) async throws -> Void) async throws {
        try await Workplace.with { place in
            let film = OriginResource.generated(length: length, cacheControl: "max-age=0")
            place.origin.serve("/film", film)
            try await place.get("/film", into: "film", "--pin").expectDone()
            try await body(place)
        }
    }

    /// What the cache alone gives, and what is said about it.
    private static func expect(
        _ version: Int,
        _ place: Workplace,
        location: SourceLocation = #_sourceLocation
    ) async throws {
        let outcome = try await place.get("/film", into: "held", "--policy", "cache-only")
        outcome.expectDone(location)
        let isRight = try place.file("held", equals: "/film", version: version)
        #expect(isRight, sourceLocation: location)
        let shown = try await place.run("show", place.origin.url("/film"), "--json")
        #expect(shown.json.text("pinned") == "true", "\(shown.text)", sourceLocation: location)
        #expect(shown.json.text("complete") == "true", "\(shown.text)", sourceLocation: location)
        let verified = try await place.run("verify", "--json")
        #expect(verified.json.integer("damaged") == 0, sourceLocation: location)
    }

    private static func curl(_ arguments: String...) async throws -> String? {
        let result = try await Subprocess.run(
            .name("curl"),
            arguments: Arguments(["-sS", "--noproxy", "*", "-o", "/dev/null"] + arguments),
            output: .string(limit: 1 << 20),
            error: .string(limit: 1 << 20)
        )
        return result.standardOutput
    }

    @Test(
        "A proxy is asked for 100 bytes, and ends or is killed",
        arguments: [SIGTERM, SIGKILL],
        [true, false]
    )
    func proxied(signal: Int32, isReverse: Bool) async throws {
        try await Self.with { place in
            let gate = OriginGate()
            place.origin.update("/film") { $0.version = 2 }
            let film = try #require(place.origin.resource("/film"))
            place.origin.serve("/film", film, OriginScript(.wait(for: gate, after: 2_000_000)))
            let options = isReverse ? ["--origin", place.origin.url("")] : []
            let status = try await place.serve(options, signal: signal) { server in
                let url =
                    isReverse
                    ? server.base + "film"
                    : server.base + "http/127.0.0.1:\(place.origin.port)/film"
                let told = try await Self.curl(
                    "-r",
                    "0-99",
                    "-w",
                    "%{http_code} %{size_download}",
                    url
                )
                #expect(told == "206 100")
            }
            #expect(status == (signal == SIGTERM ? .exited(0) : .signaled(SIGKILL)))
            gate.open()
            try await Self.expect(1, place)
        }
    }

    @Test(
        "A reload is killed in the middle, or loses its connection for good",
        arguments: [true, false]
    )
    func reload(isKilled: Bool) async throws {
        try await Self.with { place in
            place.origin.update("/film") { $0.version = 2 }
            let film = try #require(place.origin.resource("/film"))
            let behaviour = isKilled ? OriginBehaviour.stall(after: 1_000_000) : .cut(after: 0)
            place.origin.serve("/film", film, OriginScript(behaviour))
            let before = place.origin.log.bodyBytesWritten
            let arguments = ["get", place.origin.url("/film"), "--output", "/dev/null"]
            let reload = arguments + ["--policy", "reload", "--retries", "1"]
            let outcome = try await place.run(reload) { running in
                guard isKilled else { return }
                await place.origin.waitUntil { $0.bodyBytesWritten >= before + 1_000_000 }
                running.send(SIGKILL)
            }
            #expect(outcome.status != .exited(0))
            try await Self.expect(1, place)
        }
    }

    @Test("A new generation that comes to its end is pinned", arguments: ["default", "reload"])
    func complete(policy: String) async throws {
        try await Self.with { place in
            place.origin.update("/film") { $0.version = 2 }
            try await place.get("/film", into: "new", "--policy", policy).expectDone()
            #expect(try place.file("new", equals: "/film", version: 2))
            try await Self.expect(2, place)
            // It says that not all could leave.
            try await place.run("trim", "--to", "0")
            try await Self.expect(2, place)
        }
    }

    @Test("The origin answers no-store, or that it is gone", arguments: [true, false])
    func refused(isNoStore: Bool) async throws {
        try await Self.with { place in
            var film = try #require(place.origin.resource("/film"))
            film.version = 2
            film.fields[.cacheControl] = "no-store"
            let gone = OriginBehaviour.status(410).with {
                $0.overrides[.cacheControl] = "max-age=600"
            }
            place.origin.serve("/film", film, OriginScript(isNoStore ? .faithful : gone))
            let outcome = try await place.get("/film", into: "new")
            #expect((outcome.exitCode == 0) == isNoStore)
            try await Self.expect(1, place)
        }
    }
}
