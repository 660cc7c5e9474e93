import FoundationEssentials
import HTTPCaching
import SystemPackage
import TestParts
import Testing
import TieredCacheTesting

@testable import TieredCache

/// A disk that fails any call, seen through the engine: every byte is delivered, and the disk is
/// used again at most ten seconds after it is well (invariant 9).
@Suite("Failing disks, through the engine", .tags(.realTime), .timeLimit(.minutes(10)))
struct DiskRecoveryTests {
    private static let errors: [Errno] = [
        .noSpace, .readOnlyFileSystem, .ioError, .diskQuotaExceeded, .tooManyOpenFiles,
    ]

    private func withCache(
        _ fixture: CacheFixture,
        _ disk: InMemoryFileSystem,
        _ time: ManualTimeSource,
        _ change: (inout MediaCache.Configuration) -> Void = { _ in },
        _ body: (MediaCache) async throws -> Void
    ) async throws {
        var configuration = fixture.configuration()
        configuration.timeSource = time
        change(&configuration)
        let cache = try MediaCache(configuration, fileSystem: disk)
        do {
            try await body(cache)
        } catch {
            await cache.shutdown()
            throw error
        }
        await cache.shutdown()
    }

    /// Together they fail every call, each with one of the errors.
    @Test(
        "a call fails once, or from then on; then the disk is well",
        arguments: errors.indices,
        [1, .max]
    )
    func eachCall(number: Int, times: Int) async throws {
        let count = try await callsOfOneRun()
        try #require(count > 20)
        let step = times == 1 ? Self.errors.count : 3 * Self.errors.count
        for index in stride(from: number, to: count, by: step) {
            let context = "\(Self.errors[number]), \(times) times after \(index) calls"
            try await CacheFixture.run { fixture in
                let film = Self.film
                fixture.origin.serve("/film", film)
                let request = try fixture.request("/film")
                let disk = InMemoryFileSystem()
                let time = ManualTimeSource()
                disk.fail(nil, with: Self.errors[number], times: times, skipping: index)
                try await withCache(fixture, disk, time) { cache in
                    #expect(
                        try await firstDifference(cache.data(for: request), film.allBytes) == nil,
                        "\(context)"
                    )
                    disk.heal()
                    time.advance(by: .seconds(10))
                    // Stored now, if not before: what is in memory alone does not count.
                    var reload = request
                    reload.policy = .reload
                    #expect(
                        try await firstDifference(cache.data(for: reload), film.allBytes) == nil,
                        "\(context)"
                    )
                    let entry = try await cache.entry(for: request)
                    #expect(entry?.isComplete == true, "\(context)")
                    #expect(try await cache.verify().damaged == 0, "\(context)")
                }
            }
        }
    }

    private static let film = OriginResource.generated(length: 200_000, cacheControl: "max-age=60")

    private func callsOfOneRun() async throws -> Int {
        let disk = InMemoryFileSystem()
        try await CacheFixture.run { fixture in
            fixture.origin.serve("/film", Self.film)
            let request = try fixture.request("/film")
            try await withCache(fixture, disk, ManualTimeSource()) { cache in
                _ = try await cache.data(for: request)
            }
        }
        return disk.calls.count
    }

    @Test("a full disk passes bytes through, says so, and stores again once there is room")
    func fullDisk() async throws {
        try await CacheFixture.run { fixture in
            fixture.origin.serve("/film", Self.film)
            let request = try fixture.request("/film")
            let disk = InMemoryFileSystem(capacity: 100_000)
            let time = ManualTimeSource()
            try await withCache(fixture, disk, time) { configuration in
                configuration.diskLimit = 64 << 20
            } _: { cache in
                let response = try await cache.response(for: request)
                #expect(
                    try await firstDifference(response.body.collect(), Self.film.allBytes) == nil
                )
                #expect(response.isStored == false)
                #expect(response.storageError?.code == .localStorage)
                disk.setCapacity(1 << 30)
                time.advance(by: .seconds(10))
                let again = try await cache.response(for: request)
                #expect(try await firstDifference(again.body.collect(), Self.film.allBytes) == nil)
                #expect(again.storageError == nil)
                #expect(try await cache.entry(for: request)?.isComplete == true)
            }
        }
    }

    @Test("a file larger than the limit is delivered, and takes nothing from what is stored")
    func largerThanTheLimit() async throws {
        try await CacheFixture.run { fixture in
            let large = OriginResource.generated(length: 3 << 20, cacheControl: "max-age=60")
            fixture.origin.serve("/large", large)
            var unknown = large
            unknown.framing = .chunked
            fixture.origin.serve("/unknown", unknown)
            fixture.origin.serve("/film", Self.film)
            let disk = InMemoryFileSystem()
            let film = try fixture.request("/film")
            let requests = [try fixture.request("/large"), try fixture.request("/unknown")]
            try await withCache(fixture, disk, ManualTimeSource()) { configuration in
                configuration.diskLimit = 1 << 20
            } _: { cache in
                _ = try await cache.data(for: film)
                let response = try await cache.response(for: requests[0])
                #expect(try await firstDifference(response.body.collect(), large.allBytes) == nil)
                #expect(response.isStored == false)
                #expect(try await cache.entry(for: film)?.isComplete == true)
                // Its length is not known before the limit is reached.
                let other = try await cache.response(for: requests[1])
                #expect(try await firstDifference(other.body.collect(), large.allBytes) == nil)
                #expect(disk.peakAllocatedBytes <= 1 << 20)
            }
        }
    }

    @Test("several downloads at once never exceed the limit, and each is delivered whole")
    func concurrentDownloads() async throws {
        try await CacheFixture.run { fixture in
            let films = (0..<6).map { number in
                OriginResource.generated(
                    length: 400_000 + Int64(number) * 70_000,
                    seed: UInt64(number),
                    cacheControl: "max-age=60"
                )
            }
            for (number, film) in films.enumerated() { fixture.origin.serve("/\(number)", film) }
            let requests = try films.indices.map { try fixture.request("/\($0)") }
            let disk = InMemoryFileSystem()
            try await withCache(fixture, disk, ManualTimeSource()) { configuration in
                configuration.diskLimit = 1 << 20
            } _: { cache in
                for _ in 0..<2 {
                    try await withThrowingTaskGroup(of: (Int, Data).self) { group in
                        for (number, request) in requests.enumerated() {
                            group.addTask { (number, try await cache.data(for: request)) }
                        }
                        for try await (number, bytes) in group {
                            #expect(firstDifference(bytes, films[number].allBytes) == nil)
                        }
                    }
                    #expect(disk.peakAllocatedBytes <= 1 << 20)
                }
                try await cache.setDiskLimit(500_000)
                let usage = try await cache.usage()
                #expect(usage.limit == 500_000 && usage.bytes <= 500_000)
            }
        }
    }
}
