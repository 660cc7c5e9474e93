import SystemPackage
import TestParts
import Testing
import TieredCacheTesting

@testable import TieredCache

@Suite("Pins and prefetches", .tags(.realTime), .timeLimit(.minutes(10)))
struct PinningTests {
    @Test(
        "A request with a pin pins what is stored, from memory or disk",
        arguments: [true, false]
    )
    func stored(isInMemory: Bool) async throws {
        try await CacheFixture.run { fixture in
            let resource = OriginResource.generated(length: 5000, cacheControl: "max-age=60")
            fixture.origin.serve("/a", resource)
            var request = try fixture.request("/a")
            try await fixture.withCache { cache in
                _ = try await cache.data(for: request)
                guard isInMemory else { return }
                request.options.insert(.pinned)
                _ = try await cache.response(for: request).read()
                let entry = try await cache.entry(for: request)
                #expect(entry?.isPinned == true)
            }
            guard !isInMemory else { return }
            try await fixture.withCache { cache in
                request.options.insert(.pinned)
                _ = try await cache.response(for: request).read()
                let entry = try await cache.entry(for: request)
                #expect(entry?.isPinned == true)
            }
        }
    }

    @Test("A pin on what is stored that cannot be kept is tried, counted and told once")
    func failsOnce() async throws {
        try await CacheFixture.run { fixture in
            let resource = OriginResource.generated(length: 5000, cacheControl: "max-age=60")
            fixture.origin.serve("/a", resource)
            var request = try fixture.request("/a")
            let disk = InMemoryFileSystem()
            func withCache(_ body: (MediaCache) async throws -> Void) async throws {
                let cache = try MediaCache(fixture.configuration(), fileSystem: disk)
                defer { disk.heal() }
                do {
                    try await body(cache)
                } catch {
                    await cache.shutdown()
                    throw error
                }
                await cache.shutdown()
            }
            try await withCache { _ = try await $0.data(for: request) }
            request.options.insert(.pinned)
            try await withCache { cache in
                disk.fail(.rename, with: .ioError, times: .max)
                let response = try await cache.response(for: request)
                #expect(response.storageError?.code == .localStorage)
                #expect(
                    try await firstDifference(response.body.collect(), resource.allBytes) == nil
                )
                #expect(cache.statistics.storageFailures == 1)
                #expect(try await cache.entry(for: request)?.isPinned == false)
            }
        }
    }

    @Test("A prefetch that the disk does not take fails")
    func prefetch() async throws {
        try await CacheFixture.run { fixture in
            let resource = OriginResource.generated(length: 500_000, cacheControl: "max-age=60")
            fixture.origin.serve("/a", resource)
            let request = try fixture.request("/a")
            let error = await #expect(throws: CacheError.self) {
                try await fixture.withCache({ $0.minimumFreeDisk = .max / 2 }) { cache in
                    _ = try await cache.prefetch(request)
                }
            }
            #expect(error?.code == .localStorage)
            try await fixture.withCache { cache in
                let result = try await cache.prefetch(request)
                #expect(result.bytesFromOrigin == 500_000)
            }
        }
    }
}
