import FoundationEssentials
import HTTPCaching
import HTTPTypes
import SystemPackage
import TestParts
import Testing
import TieredCacheTesting

@testable import TieredCache

/// A directory that is removed under a cache, and what the responses say of it.
@Suite("Lost directories, through the engine", .tags(.realTime), .timeLimit(.minutes(10)))
struct DiskLossTests {
    private let disk = InMemoryFileSystem()
    private let time = ManualTimeSource()

    private func withCache(
        _ fixture: CacheFixture,
        limit: Int64 = 64 << 20,
        _ body: (MediaCache) async throws -> Void
    ) async throws {
        var configuration = fixture.configuration()
        configuration.timeSource = time
        configuration.diskLimit = limit
        // Nothing of what is stored is answered from memory.
        configuration.memoryLimit = 4096
        let cache = try MediaCache(configuration, fileSystem: disk)
        do {
            try await body(cache)
        } catch {
            await cache.shutdown()
            throw error
        }
        await cache.shutdown()
    }

    private func deleteDirectory(_ fixture: CacheFixture) {
        disk.deleteDirectory(fixture.directory.string)
    }

    @Test("after it was removed, what is new is stored in it again, and said to be")
    func storesAgain() async throws {
        try await CacheFixture.run { fixture in
            let film = OriginResource.generated(length: 200_000, cacheControl: "max-age=60")
            for path in ["/a", "/b", "/c"] { fixture.origin.serve(path, film) }
            try await withCache(fixture) { cache in
                _ = try await cache.data(for: try fixture.request("/a"))
                deleteDirectory(fixture)
                let response = try await cache.response(for: try fixture.request("/b"))
                #expect(response.cacheStatus.isStored)
                #expect(try await firstDifference(response.body.collect(), film.allBytes) == nil)
                #expect(response.isStored)
                #expect(try await cache.entry(for: try fixture.request("/b"))?.isComplete == true)
                // Twice within ten seconds: not stored, and not said to be.
                deleteDirectory(fixture)
                let refused = try await cache.response(for: try fixture.request("/c"))
                #expect(!refused.cacheStatus.isStored)
                #expect(try await firstDifference(refused.body.collect(), film.allBytes) == nil)
                #expect(refused.storageError?.code == .localStorage)
                time.advance(by: .seconds(10))
                let again = try await cache.response(for: try fixture.request("/c"))
                #expect(again.cacheStatus.isStored || again.cacheStatus.isHit)
                _ = try await again.body.collect()
                var reload = try fixture.request("/c")
                reload.policy = .reload
                _ = try await cache.data(for: reload)
                #expect(try await cache.entry(for: reload)?.isComplete == true)
            }
        }
    }

    @Test("a part that was open is read on; the rest of it is not said to be stored")
    func openPart() async throws {
        try await CacheFixture.run { fixture in
            let film = OriginResource.generated(length: 4 << 20, cacheControl: "max-age=60")
            fixture.origin.serve("/film", film)
            let request = try fixture.request("/film")
            try await withCache(fixture) { cache in
                _ = try await cache.bytes(for: request, range: 0..<1 << 20).collect()
                deleteDirectory(fixture)
                let response = try await cache.response(for: request)
                #expect(response.cacheStatus.forwardReason == .partial)
                #expect(!response.cacheStatus.isStored)
                #expect(try await firstDifference(response.body.collect(), film.allBytes) == nil)
                #expect(response.bytesFromCache == 1 << 20)
                #expect(!response.isStored)
                // The next request finds a directory that stores.
                let next = try await cache.response(for: request)
                #expect(next.cacheStatus.isStored)
                #expect(try await firstDifference(next.body.collect(), film.allBytes) == nil)
                #expect(try await cache.entry(for: request)?.isComplete == true)
            }
        }
    }

    @Test("a 304 for what was in it is not said to be stored")
    func confirmed() async throws {
        try await CacheFixture.run { fixture in
            let film = OriginResource.generated(length: 4 << 20, cacheControl: "no-cache")
            fixture.origin.serve("/film", film)
            let request = try fixture.request("/film")
            try await withCache(fixture) { cache in
                _ = try await cache.data(for: request)
                let kept = try await cache.response(for: request)
                #expect(kept.cacheStatus.forwardStatus == 304 && kept.cacheStatus.isStored)
                deleteDirectory(fixture)
                let response = try await cache.response(for: request)
                #expect(response.cacheStatus.forwardStatus == 304)
                #expect(!response.cacheStatus.isStored)
                #expect(try await firstDifference(response.body.collect(), film.allBytes) == nil)
            }
        }
    }

    @Test(
        "bytes from a far offset of a body of unknown length pass, and take nothing",
        arguments: [1 << 40, 1 << 61] as [Int64]
    )
    func farOffset(start: Int64) async throws {
        try await CacheFixture.run { fixture in
            let film = OriginResource.generated(
                length: start + (1 << 20),
                cacheControl: "max-age=60"
            )
            let end = start + 131_072
            let range = "bytes \(start)-\(end - 1)/*"
            fixture.origin.serve("/film", film, OriginScript(.lying([.contentRange: range])))
            let request = try fixture.request("/film")
            try await withCache(fixture) { cache in
                let body = try await cache.bytes(for: request, range: start..<end)
                let expected = film.bodyOfVersion(1)?.bytes(in: start..<end)
                #expect(try await body.collect().elementsEqual(expected ?? []))
                #expect(disk.peakAllocatedBytes < 100_000)
            }
        }
    }
}
