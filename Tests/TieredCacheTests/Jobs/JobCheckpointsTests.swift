import FoundationEssentials
import HTTPCaching
import SystemPackage
import TestParts
import Testing
import TieredCacheTesting

@_spi(Benchmarks) @testable import TieredCache

/// What a power cut in the middle of a job may take.
@Suite("Checkpoints of jobs", .tags(.realTime), .timeLimit(.minutes(10)))
struct JobCheckpointsTests {
    @Test("every 8 MiB, or two seconds after the last time if there is news")
    func due() {
        let start = MonotonicTime(nanoseconds: 5)
        func at(_ seconds: Double) -> MonotonicTime { start.advanced(by: .seconds(seconds)) }
        var checkpoints = JobCheckpoints(now: start)
        let steps: [(Int64, Double, Bool)] = [
            (1, 0, false), (8 << 20, 0.1, true), ((8 << 20) + 1, 2, false),
            ((8 << 20) + 1, 2.1, true), ((8 << 20) + 1, 60, false), ((8 << 20) + 2, 61, true),
            (30 << 20, 61, true), ((38 << 20) - 1, 62, false), (38 << 20, 62, true),
        ]
        for (number, step) in steps.enumerated() {
            let isDue = checkpoints.isDue(at: step.0, now: at(step.1))
            #expect(isDue == step.2, "step \(number)")
        }
    }

    private func wait(
        for handle: DownloadHandle,
        until condition: (DownloadStatus) -> Bool
    ) async {
        for await status in handle.progress where condition(status) { return }
    }

    /// The stored bytes of the only entry after a power cut that takes all that was not synced.
    private func storedAfterPowerCut(_ disk: InMemoryFileSystem, _ key: CacheKey) throws -> Int64 {
        let after = disk.afterCrash(.unsyncedLost)
        var options = DiskStoreOptions(root: "/cache", limit: 256 << 20)
        options.minimumFree = 0
        let store = try DiskStore(options, fileSystem: after, timeSource: ManualTimeSource())
        guard let entry = try store.entry(for: key) else { return 0 }
        var buffer = [UInt8](repeating: 0, count: 1 << 20)
        var stored: Int64 = 0
        while case let count = buffer.withUnsafeMutableBytes({ entry.read(at: stored, into: $0) }),
            count > 0
        {
            stored += Int64(count)
        }
        return stored
    }

    @Test(
        "a power cut takes at most what came after the last checkpoint",
        arguments: [true, false]
    )
    func powerCut(isPinned: Bool) async throws {
        try await CacheFixture.run { fixture in
            let film = OriginResource.generated(length: 24 << 20, cacheControl: "max-age=60")
            // More than two checkpoints' worth, then nothing for a while.
            fixture.origin.serve("/film", film, .first(1, .stall(after: 18 << 20)))
            let disk = InMemoryFileSystem(time: ManualTimeSource(), remembersUnsynced: true)
            // The directory itself is the user's to keep.
            _ = try disk.openRoot("/cache", creating: true)
            disk.syncEverything()
            var request = try fixture.request("/film")
            request.options.set(.pinned, to: isPinned)
            var configuration = fixture.configuration()
            configuration.path = "/cache"
            configuration.diskLimit = 256 << 20
            let cache = try MediaCache(configuration, fileSystem: disk)
            let handle = try await cache.downloads.start(request)
            await wait(for: handle) { $0.bytes == 18 << 20 }
            let stored = try storedAfterPowerCut(disk, request.key)
            if isPinned {
                // Less than 8 MiB, and a piece that was on its way.
                #expect(stored >= 9 << 20 && stored <= 18 << 20, "\(stored)")
            } else {
                // No more was asked for.
                #expect(stored == 0)
            }
            await cache.shutdown()
        }
    }
}
