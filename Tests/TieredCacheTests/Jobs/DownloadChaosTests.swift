import FoundationEssentials
import HTTPCaching
import HTTPTypes
import TestParts
import Testing
import TieredCacheTesting

@testable import TieredCache

#if canImport(Glibc)
import Glibc
#elseif canImport(Darwin)
import Darwin
#endif

/// Thirty downloads from an origin that cuts, stalls, fails, changes and redirects, while the cache
/// is closed and opened again; all drawn from a seed. Every file ends as one generation.
///
/// `TIEREDCACHE_CHAOS_ROUNDS` repeats it with other seeds, `TIEREDCACHE_CHAOS_SEED` repeats one.
@Suite(.tags(.realTime), .timeLimit(.minutes(10)))
struct DownloadChaosTests {
    private static let downloads = 30

    private static func environment(_ name: String) -> UInt64? {
        getenv(name).flatMap { UInt64(String(cString: $0)) }
    }

    @Test("Thirty downloads in chaos end as one generation each, and the ledger balance")
    func thirty() async throws {
        let rounds = Self.environment("TIEREDCACHE_CHAOS_ROUNDS") ?? 1
        for _ in 0..<rounds {
            let seed = Self.environment("TIEREDCACHE_CHAOS_SEED") ?? .random(in: 0 ... .max)
            try await round(seed: seed)
        }
    }

    /// How one path of the origin behaves, ending in a faithful response.
    private func script(_ random: inout SplitMix, length: Int64) -> OriginScript {
        var script = OriginScript()
        for _ in 0..<Int.random(in: 0...4, using: &random) {
            let offset = Int64.random(in: 0...length, using: &random)
            let behaviour: OriginBehaviour
            switch Int.random(in: 0..<7, using: &random) {
            case 0: behaviour = .cut(after: offset, .reset)
            case 1: behaviour = .cut(after: offset, .finish)
            case 2: behaviour = .status([500, 503, 429].randomElement(using: &random) ?? 500)
            case 3: behaviour = .changeVersion(after: offset)
            case 4: behaviour = .dropped()
            case 5: behaviour = .ignoringRange
            default: behaviour = .stall(after: offset)
            }
            script = script.then(1, behaviour)
        }
        return script.then(.faithful)
    }

    private func round(seed: UInt64) async throws {
        var random = SplitMix(seed: seed)
        try await CacheFixture.run { fixture in
            var paths: [String] = []
            for index in 0..<Self.downloads {
                let length = Int64.random(in: 0...(1 << 20), using: &random)
                let resource = OriginResource.generated(
                    length: length,
                    seed: UInt64(index),
                    cacheControl: "max-age=3600"
                )
                fixture.origin.serve("/\(index)", resource, script(&random, length: length))
                let isRedirected = Int.random(in: 0..<4, using: &random) == 0
                if isRedirected {
                    let status = [301, 302, 307, 308].randomElement(using: &random) ?? 302
                    fixture.origin.serve(
                        "/r\(index)",
                        OriginScript(.redirect(to: "/\(index)", status: status))
                    )
                }
                paths.append(isRedirected ? "/r\(index)" : "/\(index)")
            }
            var received: Int64 = 0
            // Each life of the cache ends after so many requests; the last one ends by itself.
            for requests in [10, 25, 45] {
                received += try await life(fixture, paths, seed: seed) { origin in
                    let limit = requests
                    await origin.waitUntil { $0.exchanges.count >= limit }
                }
            }
            received += try await life(fixture, paths, seed: seed) { _ in nil as Void? }
            try await check(fixture, paths, received, seed: seed)
        }
    }

    /// Opens the cache, goes on with every download until `end` returns or all are finished.
    ///
    /// - Returns: the body bytes that arrived.
    private func life(
        _ fixture: CacheFixture,
        _ paths: [String],
        seed: UInt64,
        until end: @escaping @Sendable (ScriptedOrigin) async -> Void?
    ) async throws -> Int64 {
        try await fixture.withCache {
            // Silence is part of the game; it must not last.
            $0.timeout = .seconds(1)
            $0.retries = 12
        } _: { cache in
            var handles: [DownloadHandle] = []
            for path in paths {
                handles.append(try await cache.downloads.start(fixture.request(path)))
            }
            let origin = fixture.origin
            let all = handles
            await withTaskGroup { group in
                group.addTask { _ = await Self.finish(all) }
                group.addTask { if await end(origin) == nil { _ = await Self.finish(all) } }
                await group.next()
                group.cancelAll()
            }
            await cache.shutdown()
            return cache.statistics.bytesFromOrigin
        }
    }

    /// Resumes whatever gives up until all have finished.
    private static func finish(_ handles: [DownloadHandle]) async {
        await withTaskGroup { group in
            for handle in handles {
                group.addTask {
                    for await status in handle.progress {
                        if status.state == .finished { return }
                        if status.state.isEnd { await handle.resume() }
                    }
                }
            }
        }
    }

    private func check(
        _ fixture: CacheFixture,
        _ paths: [String],
        _ received: Int64,
        seed: UInt64
    ) async throws {
        await fixture.origin.waitUntil { $0.openConnections == 0 }
        try await fixture.withCache { cache in
            let jobs = try await cache.downloads.all()
            #expect(jobs.count == paths.count, "seed \(seed)")
            #expect(jobs.allSatisfy { $0.status.state == .finished }, "seed \(seed)")
            for path in paths {
                var request = try fixture.request(path)
                request.policy = .cacheOnly
                let data = try await cache.data(for: request)
                let resource = fixture.origin.resource(path.replacingR)
                let versions = (1...(resource?.version ?? 1)).compactMap {
                    resource?.bodyOfVersion($0).map { Data($0.bytes()) }
                }
                #expect(versions.contains(data), "\(path) is no generation; seed \(seed)")
            }
            let verification = try await cache.verify()
            #expect(verification.damaged == 0, "seed \(seed)")
            // What was counted as received is at least what is stored, and at most what was sent.
            let stored = try await cache.entries().reduce(0) { $0 + $1.storedBytes }
            #expect(received >= stored, "seed \(seed)")
            #expect(received <= fixture.origin.log.bodyBytesWritten, "seed \(seed)")
            await DownloadBatch(jobs).acknowledge()
            let left = try await cache.downloads.all()
            #expect(left.isEmpty, "seed \(seed)")
        }
    }
}

extension String {
    /// The path behind `/r5`, which redirects to it.
    fileprivate var replacingR: String { hasPrefix("/r") ? "/" + dropFirst(2) : self }
}
