import TestParts
import Testing
import TieredCacheTesting

@testable import TieredCache

@Suite(.tags(.realTime), .timeLimit(.minutes(10)))
struct PrefetchRoomTests {
    @Test("Of prefetches that do not fit together, those that fit are stored")
    func together() async throws {
        try await CacheFixture.run { fixture in
            let film = OriginResource.generated(length: 8 << 20, cacheControl: "max-age=600")
            let gate = OriginGate()
            let stored = OriginBehaviour.faithful.with { $0.gate = gate }
            for item in 0..<6 { fixture.origin.serve("/\(item)", film, OriginScript(stored)) }
            let requests = try (0..<6).map { try fixture.request("/\($0)") }
            try await fixture.withCache {
                $0.diskLimit = 20 << 20
                $0.maximumDownloads = 8
            } _: { cache in
                let results = await withTaskGroup(of: Result<Void, any Error>.self) { group in
                    for request in requests {
                        group.addTask {
                            do {
                                _ = try await cache.prefetch(request)
                                return .success(())
                            } catch {
                                return .failure(error)
                            }
                        }
                    }
                    await fixture.origin.waitUntil { $0.exchanges.count >= 5 }
                    gate.open()
                    return await group.reduce(into: []) { $0.append($1) }
                }
                var stored = 0
                for result in results {
                    if case .failure(let error) = result {
                        #expect((error as? CacheError)?.code == .localStorage)
                    } else {
                        stored += 1
                    }
                }
                #expect(stored >= 2)
                let complete = try await cache.entries().filter(\.isComplete)
                #expect(complete.count == 2)
                let usage = try await cache.usage()
                #expect(usage.bytes <= 20 << 20)
            }
            // Those that did not fit have not been brought all the same.
            #expect(fixture.origin.log.bodyBytesWritten < 6 * film.length)
        }
    }
}
