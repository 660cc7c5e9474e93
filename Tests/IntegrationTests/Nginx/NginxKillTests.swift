import Subprocess
import SystemPackage
import TestParts
import Testing
import TieredCacheTesting

@testable import TieredCacheCLI

/// SIGKILL against a throttled server of other authors, with every byte accounted for.
@Suite("SIGKILL and nginx", .tags(.server, .realTime), .timeLimit(.minutes(10)))
struct NginxKillTests {
    /// Runs `get` to standard output and kills it when so many bytes have come out of it.
    ///
    /// - Returns: the bytes that came out.
    private func kill(
        _ arguments: [String],
        after limit: Int64,
        _ content: GeneratedBody
    ) async throws -> Int64 {
        let outcome = try await Subprocess.run(
            .path(try Workplace.program),
            arguments: Arguments(arguments),
            input: .none,
            output: .sequence,
            error: .discarded
        ) { execution in
            var delivered: Int64 = 0
            var isKilled = false
            for try await piece in execution.standardOutput {
                let isRight = piece.withUnsafeBytes { content.matches($0, at: delivered) }
                try #require(isRight, "wrong bytes at \(delivered)")
                delivered += Int64(piece.count)
                guard delivered >= limit, !isKilled else { continue }
                isKilled = true
                try execution.send(signal: .kill)
            }
            return delivered
        }
        return outcome.closureResult
    }

    @Test("A kill loses at most one block of what was delivered; the end equals the file")
    func kills() async throws {
        let seed = UInt64.random(in: 0 ... .max)
        let content = GeneratedBody(seed: seed, length: 3 << 20)
        let files = try TemporaryDirectory("tieredcache-kill")
        let points: [Int64] = [300_000, 900_000, 1_700_000]
        _ = try await NginxServer.run(files: ["film": content]) { server in
            let cache = ["--directory", files.appending("cache").string]
            let place = Workplace(origin: ScriptedOrigin(), files: files)
            var lost: [Int64] = []
            let get = ["get", server.url("/slow/film")]
            for point in points {
                let delivered = try await kill(get + cache, after: point, content)
                let list = try await place.runPlain(["downloads", "--json"] + cache)
                #expect(list.json.text("state") == "queued", "seed \(seed)")
                let stored = try #require(list.json.integer("bytes"), "seed \(seed)")
                #expect(stored >= delivered - 65_536, "\(stored) of \(delivered), seed \(seed)")
                lost.append(max(0, delivered - stored))
            }
            Workplace.report("delivered and fetched twice after SIGKILL", lost)
            let resume = try await place.runPlain(["resume", "--json"] + cache)
            resume.expectDone()
            let output = ["--output", files.appending("a").string]
            let last = try await place.runPlain(get + output + ["--json"] + cache)
            last.expectDone()
            #expect(last.json.integer("fromOrigin") == 0)
            #expect(try files.file("a", equals: content), "seed \(seed)")
        }
    }
}
