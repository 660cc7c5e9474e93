#if os(Linux) && DEBUG && HTTPClient
import Foundation
import HTTPTypes
import SystemPackage
import TieredCacheTesting

@testable import TieredCache

/// A way through the engine, of which is counted what it takes.
///
/// It runs on threads of its own, one job after the other, on a disk in memory, with an origin that
/// has no sockets. What it costs is so the same in each round, but for what the engine does now and
/// then by the clock, and every few hundred times: the least of several rounds is without that.
struct Walk: Sendable {
    private static let warmUps = 5
    private static let rounds = 10

    /// Whether there is a disk tier.
    var hasDirectory = true
    /// The responses of the origin.
    var answer: @Sendable (HTTPRequest) -> WalkOrigin.Answer
    /// What is done once before all rounds, and not counted.
    var setUp: @Sendable (MediaCache) async throws -> Void = { _ in }
    /// What is done before each round, and not counted.
    var prepare: @Sendable (MediaCache) async throws -> Void = { _ in }
    /// What is counted.
    var body: @Sendable (MediaCache) async throws -> Void
    /// Which statistic says how often it was walked as it is meant to be.
    var evidence: @Sendable (MediaCache.Statistics) -> Int64

    /// Counts what it takes.
    ///
    /// - Throws: ``WalkFailure`` if it was another walk; errors of the walk.
    func count() async throws -> WalkCount {
        try await withCheckedThrowingContinuation { continuation in
            let thread = Thread {
                continuation.resume(with: Result { try countOnThisThread() })
            }
            thread.start()
        }
    }

    private func countOnThisThread() throws -> WalkCount {
        try WalkThreads.with { threads in
            let disk = InMemoryFileSystem()
            let cache = try threads.run { try openCache(disk, threads) }
            defer { end(cache, threads) }
            try threads.run { try await setUp(cache) }
            let before = evidence(cache.statistics)
            let counts = try WalkEvents.whileTold {
                try (0..<Self.warmUps + Self.rounds).map { _ in
                    try threads.run { try await prepare(cache) }
                    return try countRound(cache, disk, threads)
                }
            }
            guard evidence(cache.statistics) - before == counts.count else {
                throw WalkFailure("it was another walk: \(cache.statistics)")
            }
            return WalkCount.least(Array(counts.dropFirst(Self.warmUps)))
        }
    }

    private func countRound(
        _ cache: MediaCache,
        _ disk: InMemoryFileSystem,
        _ threads: WalkThreads
    ) throws -> WalkCount {
        let calls = disk.calls.count
        _ = threads.takeJobs()
        let first = try TaskNumbers.next()
        let events = try WalkEvents.count { try threads.run { try await body(cache) } }
        // One task is `first`, one has run the walk.
        let tasks = try Int(TaskNumbers.next() - first) - 2
        var jobs = threads.takeJobs()
        jobs["pool", default: 0] -= 1
        let made = disk.calls.dropFirst(calls).map { "\($0.call)" }
        return WalkCount(
            [
                .locks: events.locks,
                .instances: events.objects,
                .handovers: jobs,
                .calls: made.reduce(into: [:]) { $0[$1, default: 0] += 1 },
            ],
            tasks: tasks
        )
    }

    private func openCache(
        _ disk: InMemoryFileSystem,
        _ threads: WalkThreads
    ) throws -> MediaCache {
        var configuration = MediaCache.Configuration(path: "/cache")
        if !hasDirectory { configuration.path = nil }
        configuration.minimumFreeDisk = 0
        configuration.networkMonitor = nil
        configuration.respondsToMemoryPressure = false
        configuration.transport = WalkOrigin(threads, answer: answer)
        var parts = EngineParts()
        parts.fileSystem = disk
        parts.makeExecutor = { threads.executor($0) }
        return try MediaCache(configuration, parts: parts)
    }

    private func end(_ cache: MediaCache, _ threads: WalkThreads) {
        do {
            try threads.run { await cache.shutdown() }
        } catch {
            // It throws nothing.
        }
    }
}
#endif
