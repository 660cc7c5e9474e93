import HTTPTypes
import TestParts
import Testing
import TieredCacheTesting

@testable import TieredCacheCLI

#if canImport(Glibc)
import Glibc
#elseif canImport(Darwin)
import Darwin
#endif

/// Thirty downloads from an origin that cuts, stalls, fails, changes and redirects, by processes
/// that are killed; all drawn from a seed. Every file ends as one generation.
///
/// `TIEREDCACHE_CHAOS_ROUNDS` repeats it with other seeds, `TIEREDCACHE_CHAOS_SEED` repeats one.
@Suite("Chaos and SIGKILL", .tags(.realTime), .timeLimit(.minutes(60)))
struct ChaosKillTests {
    private static let downloads = 30

    private static func environment(_ name: String) -> UInt64? {
        getenv(name).flatMap { UInt64(String(cString: $0)) }
    }

    @Test("Thirty downloads by processes that are killed end as one generation each", .tags(.long))
    func thirty() async throws {
        let rounds = Self.environment("TIEREDCACHE_CHAOS_ROUNDS") ?? 1
        for round in 0..<rounds {
            let seed = Self.environment("TIEREDCACHE_CHAOS_SEED") ?? .random(in: 0 ... .max)
            try await Workplace.with { place in
                var chaos = Chaos(seed: seed)
                try await self.round(&chaos, in: place)
            }
            if rounds > 1 { print("chaos round \(round), seed \(seed): done") }
        }
    }

    private func round(_ chaos: inout Chaos, in place: Workplace) async throws {
        let targets = (0..<Self.downloads).map { chaos.serve($0, from: place.origin) }
        let prefetch =
            ["prefetch", "--timeout", "1", "--retries", "12"]
            + targets.map(place.origin.url)
        // Each request is for one of thirty targets, so that so many come in any case.
        for limit in chaos.killPoints(below: Self.downloads - 2) {
            let outcome = try await place.run(prefetch) { running in
                await place.origin.waitUntil { $0.exchanges.count >= limit }
                running.send(SIGKILL)
                await place.origin.waitUntil { $0.openConnections == 0 }
            }
            #expect(outcome.exitCode == nil, "seed \(chaos.seed)")
        }
        // What is on record first, and then all until nothing fails; every script has an end.
        _ = try await place.run("resume", "--timeout", "1", "--retries", "12", "--quiet")
        var lives = 0
        while try await place.run(prefetch).exitCode != 0, lives < 20 { lives += 1 }
        try await check(targets, in: place, seed: chaos.seed)
    }

    private func check(_ targets: [String], in place: Workplace, seed: UInt64) async throws {
        var total: Int64 = 0
        for (index, target) in targets.enumerated() {
            let path = "/\(index)"
            let outcome = try await place.get(target, into: "f\(index)", "--policy", "cache-only")
            #expect(outcome.exitCode == 0, "\(target): \(outcome.error); seed \(seed)")
            let resource = try #require(place.origin.resource(path))
            let versions = 1...resource.version
            let isOne = try versions.contains {
                try place.file("f\(index)", equals: path, version: $0)
            }
            #expect(isOne, "\(target) is no generation; seed \(seed)")
            total += resource.length
        }
        // All that is stored was sent, and nothing that is stored is damaged.
        let sent = place.origin.log.bodyBytesWritten
        #expect(sent >= total, "seed \(seed)")
        // Of which the cuts, the changes and the ignored ranges of the script have their share.
        print(
            "chaos: \(total) bytes held, \(sent) sent in \(place.origin.log.exchanges.count) answers"
        )
        let verify = try await place.run("verify", "--json")
        verify.expectDone()
        #expect(verify.json.integer("damaged") == 0, "seed \(seed)")
    }
}

/// What the origin does in one round, and when processes die.
private struct Chaos {
    let seed: UInt64
    private var random: SplitMix

    init(seed: UInt64) {
        self.seed = seed
        random = SplitMix(seed: seed)
    }

    /// Three, in order.
    mutating func killPoints(below limit: Int) -> [Int] {
        (0..<3).map { _ in Int.random(in: 1..<limit, using: &random) }.sorted()
    }

    /// Serves one file, and returns where it is asked for: perhaps behind a redirect.
    mutating func serve(_ index: Int, from origin: ScriptedOrigin) -> String {
        let length = Int64.random(in: 1...(2 << 20), using: &random)
        var script = OriginScript()
        for _ in 0..<Int.random(in: 0...4, using: &random) {
            script = script.then(1, behaviour(length))
        }
        origin.serveFresh("/\(index)", length: length, seed: UInt64(index), script)
        guard Int.random(in: 0..<4, using: &random) == 0 else { return "/\(index)" }
        let status = [301, 302, 307, 308].randomElement(using: &random) ?? 302
        origin.serve("/r\(index)", OriginScript(.redirect(to: "/\(index)", status: status)))
        return "/r\(index)"
    }

    private mutating func behaviour(_ length: Int64) -> OriginBehaviour {
        let offset = Int64.random(in: 0...length, using: &random)
        switch Int.random(in: 0..<7, using: &random) {
        case 0: return .cut(after: offset, .reset)
        case 1: return .cut(after: offset, .finish)
        case 2: return .status([500, 503, 429].randomElement(using: &random) ?? 500)
        case 3: return .changeVersion(after: offset)
        case 4: return .dropped()
        case 5: return .ignoringRange
        default: return .stall(after: offset)
        }
    }
}
