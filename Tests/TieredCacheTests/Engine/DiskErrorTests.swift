import FoundationEssentials
import SystemPackage
import TestParts
import Testing
import TieredCacheTesting

@testable import TieredCache

/// Invariant 9: disk trouble never fails what the origin can serve.
@Suite(.tags(.realTime), .timeLimit(.minutes(10)))
struct DiskErrorTests {
    private func withCache(
        _ fixture: CacheFixture,
        _ disk: InMemoryFileSystem,
        _ body: (MediaCache) async throws -> Void
    ) async throws {
        let cache = try MediaCache(fixture.configuration(), fileSystem: disk)
        do {
            try await body(cache)
        } catch {
            await cache.shutdown()
            throw error
        }
        await cache.shutdown()
    }

    @Test("Every reader gets every byte when the disk fails at any write", arguments: 0..<12)
    func writesFail(_ skipping: Int) async throws {
        try await CacheFixture.run { fixture in
            let film = OriginResource.generated(length: 600_000, cacheControl: "max-age=60")
            fixture.origin.serve("/film", film)
            let request = try fixture.request("/film")
            let disk = InMemoryFileSystem()
            disk.fail(.write, with: .noSpace, times: .max, skipping: skipping)
            try await withCache(fixture, disk) { cache in
                try await withThrowingTaskGroup(of: Data.self) { group in
                    for _ in 0..<3 { group.addTask { try await cache.data(for: request) } }
                    for try await bytes in group {
                        #expect(firstDifference(bytes, film.allBytes) == nil)
                    }
                }
            }
        }
    }

    @Test(
        "A body without length and validator comes whole when the disk fails at any write",
        arguments: 0..<12
    )
    func theEndIsNotRecorded(_ skipping: Int) async throws {
        try await CacheFixture.run { fixture in
            var film = OriginResource.generated(length: 300_000, cacheControl: "max-age=60")
            film.framing = .chunked
            film.entityTag = .none
            fixture.origin.serve("/film", film)
            let request = try fixture.request("/film")
            let disk = InMemoryFileSystem()
            disk.fail(.write, with: .noSpace, times: .max, skipping: skipping)
            try await withCache(fixture, disk) { cache in
                let response = try await cache.response(for: request)
                #expect(try await firstDifference(response.body.collect(), film.allBytes) == nil)
            }
            #expect(fixture.origin.log.exchanges.count == 1)
        }
    }

    @Test("A gap that cannot be stored is passed on, and what is stored behind it follows")
    func aGapIsPassed() async throws {
        try await CacheFixture.run { fixture in
            let film = OriginResource.generated(length: 4 << 20, cacheControl: "max-age=60")
            fixture.origin.serve("/film", film)
            let request = try fixture.request("/film")
            let disk = InMemoryFileSystem()
            try await withCache(fixture, disk) { cache in
                for range: Range<Int64> in [0..<1 << 20, 2 << 20..<3 << 20] {
                    _ = try await cache.bytes(for: request, range: range).collect()
                }
                disk.fail(.write, with: .noSpace, times: .max)
                let response = try await cache.response(for: request)
                #expect(try await firstDifference(response.body.collect(), film.allBytes) == nil)
                #expect(response.bytesFromCache == 2 << 20)
                #expect(response.bytesFromOrigin == 2 << 20)
                #expect(response.storageError?.code == .localStorage)
                #expect(response.isStored == false)
            }
        }
    }

    @Test("A prefetch fails when the disk does, for storing was its purpose")
    func prefetchFails() async throws {
        try await CacheFixture.run { fixture in
            fixture.origin.serve("/film", .generated(length: 1 << 20, cacheControl: "max-age=60"))
            let request = try fixture.request("/film")
            let disk = InMemoryFileSystem()
            try await withCache(fixture, disk) { cache in
                disk.fail(.write, with: .noSpace, times: .max, skipping: 6)
                let error = await #expect(throws: CacheError.self) {
                    try await cache.prefetch(request)
                }
                #expect(error?.code == .localStorage)
            }
        }
    }
}
