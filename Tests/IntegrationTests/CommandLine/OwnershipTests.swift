import FoundationEssentials
import SystemPackage
import TestParts
import Testing
import TieredCacheTesting

@testable import TieredCache
@testable import TieredCacheCLI

#if canImport(Glibc)
import Glibc
#elseif canImport(Darwin)
import Darwin
#endif

/// Processes that want to own one directory.
@Suite("Ownership", .tags(.realTime), .timeLimit(.minutes(10)))
struct OwnershipTests {
    private final class Alive: Sendable {
        let processes = Guarded<[Int: Workplace.Running]>([:])
    }

    /// Three processes begin at once; the one that owns the directory waits for the origin.
    ///
    /// - Returns: how those that do not own it ended, and how the one that does.
    private func race(
        _ place: Workplace,
        _ path: String,
        gate: OriginGate,
        kills: Bool
    ) async throws -> (losers: [ProgramOutcome], owner: ProgramOutcome?) {
        let alive = Alive()
        return try await withThrowingTaskGroup(of: (Int, ProgramOutcome).self) { group in
            for number in 0..<3 {
                group.addTask {
                    let outcome = try await place.run("prefetch", place.origin.url(path)) { run in
                        alive.processes.withLock { $0[number] = run }
                    }
                    return (number, outcome)
                }
            }
            var outcomes: [ProgramOutcome] = []
            for _ in 0..<2 {
                guard let (number, outcome) = try await group.next() else { break }
                alive.processes.withLock { $0[number] = nil }
                outcomes.append(outcome)
            }
            if kills {
                alive.processes.withLock { $0.values.first }?.send(SIGKILL)
            }
            gate.open()
            return (outcomes, try await group.next()?.1)
        }
    }

    @Test(
        "in fifty races one process owns the directory, also where the one before was killed",
        .tags(.long)
    )
    func races() async throws {
        try await Workplace.with { place in
            for round in 0..<50 {
                let gate = OriginGate()
                let path = "/\(round)"
                place.origin.serveFresh(
                    path,
                    length: 200_000,
                    .first(1, .wait(for: gate, after: 1000))
                )
                let kills = round % 2 == 1
                let (losers, owner) = try await race(place, path, gate: gate, kills: kills)
                for loser in losers { loser.expectFailure(75, "owns the cache directory") }
                let asked = place.exchanges(path).count
                // It may have been killed before it could ask.
                #expect(kills ? asked <= 1 : asked == 1, "round \(round)")
                if !kills { #expect(owner?.exitCode == 0, "round \(round)") }
            }
            let verified = try await place.run("verify", "--json")
            verified.expectDone()
            #expect(verified.json.integer("damaged") == 0)
        }
    }

    @Test("two that want one film fetch it once, and it is stored, whoever owns the directory")
    func sharing() async throws {
        try await Workplace.with { place in
            let gate = OriginGate()
            place.origin.serveFresh(
                "/film",
                length: 3_000_000,
                .first(1, .wait(for: gate, after: 1_000_000))
            )
            async let one = place.get("/film", into: "one")
            await place.origin.waitUntil { $0.bodyBytesWritten(for: "/film") >= 1_000_000 }
            async let other = place.get("/film", into: "other") { _ in
                // It has begun, by the owner; a request of its own would be seen here.
                gate.open()
            }
            try await one.expectDone()
            try await other.expectDone()
            #expect(try place.file("one", equals: "/film"))
            #expect(try place.file("other", equals: "/film"))
            #expect(place.origin.log.bodyBytesWritten(for: "/film") == 3_000_000)
        }
    }

    @Test("an owner that is stopped, or killed, in the middle leaves a guest its film")
    func poorOwner() async throws {
        try await Workplace.with { place in
            for (number, signal) in [SIGSTOP, SIGKILL].enumerated() {
                let gate = OriginGate()
                let path = "/\(number)"
                place.origin.serveFresh(
                    path,
                    length: 3_000_000,
                    .first(1, .wait(for: gate, after: 1_000_000))
                )
                try await place.serve(signal: SIGKILL) { owner in
                    try await place.get(path, into: "film", "--timeout", "6") { _ in
                        await place.origin.waitUntil {
                            $0.bodyBytesWritten(for: path) >= 1_000_000
                        }
                        kill(owner.processIdentifier, signal)
                        gate.open()
                    }.expectDone()
                    #expect(try place.file("film", equals: path))
                }
            }
        }
    }

    @Test("processes of other users get nothing of the owner", .enabled(if: geteuid() == 0))
    func otherUsers() async throws {
        try await Workplace.with { place in
            try await place.serve { _ in
                let socket = place.cache.appending("OWNER").string
                var status = stat()
                // It answers players first, and guests as soon as the disk has the name.
                while lstat(socket, &status) != 0 {
                    try Task.checkCancellation()
                    await Task.yield()
                }
                #expect(status.st_mode & 0o777 == 0o600)
                // As if the file system let all in.
                #expect(chmod(socket, 0o777) == 0)
                var path = place.cache
                while !path.components.isEmpty, path != "/tmp" {
                    chmod(path.string, 0o755)
                    path.removeLastComponent()
                }
                let ask = """
                    curl -s -o /dev/null -w '%{http_code}' --unix-socket '\(socket)' http://localhost/
                    """
                let own = try await place.runPlain(["-c", ask], program: "/bin/sh")
                #expect(own.output == Array("502".utf8))
                let user = "setpriv --reuid 65534 --regid 65534 --clear-groups \(ask)"
                let other = try await place.runPlain(["-c", user], program: "/bin/sh")
                #expect(other.output == Array("000".utf8))
            }
        }
    }

    @Test("with the oddest umask, the owner can still open its own files")
    func umask() async throws {
        try await Workplace.with { place in
            place.origin.serveFresh("/film", length: 200_000)
            let program = try Workplace.program.string
            let command = """
                umask 0777; exec "\(program)" prefetch "\(place.origin.url("/film"))" \
                --directory "\(place.cache.string)"
                """
            try await place.runPlain(["-c", command], program: "/bin/sh").expectDone()
            for path in try FileManager.default.subpathsOfDirectory(atPath: place.cache.string) {
                var status = stat()
                try #require(lstat(place.cache.appending(path).string, &status) == 0)
                let isDirectory = status.st_mode & S_IFMT == S_IFDIR
                #expect(status.st_mode & 0o777 == (isDirectory ? 0o700 : 0o600), "\(path)")
            }
            try await place.get("/film", into: "film", "--policy", "cache-only").expectDone()
        }
    }
}
