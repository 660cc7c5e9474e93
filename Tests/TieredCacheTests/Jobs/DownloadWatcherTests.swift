import Dispatch
import Testing
import TieredCacheTesting

@testable import TieredCache

/// Reports to the watchers of a download, on their way between two locks: that of the job, and that
/// which each task has, which a cancel holds while the stream's termination takes the job's.
@Suite("Downloads: watchers", .timeLimit(.minutes(1)))
struct DownloadWatcherTests {
    /// Runs the consumer, and notes whether the job's lock was free each time it was resumed.
    private final class Probe: Sendable {
        let wasFree = Guarded<[Bool]>([])
        private let handle: DownloadHandle
        private let threads = IOExecutor(threads: 2)

        init(_ handle: DownloadHandle) {
            self.handle = handle
        }

        func executor() -> IOExecutor {
            IOExecutor { [self] job, executor in
                let didRead = DispatchSemaphore(value: 0)
                Task(executorPreference: threads) { [handle] in
                    _ = handle.status
                    didRead.signal()
                }
                let isFree = didRead.wait(timeout: .now() + .seconds(2)) == .success
                wasFree.withLock { $0.append(isFree) }
                Thread.run { job.runSynchronously(on: executor) }
            }
        }
    }

    /// A thread of its own for each call.
    private enum Thread {
        private static let queue = DispatchQueue(label: "consumer")

        static func run(_ body: @escaping @Sendable () -> Void) { queue.async(execute: body) }
    }

    @Test("a watcher is resumed outside the lock of the job, which its termination takes")
    func resumesOutsideTheLock() async throws {
        try await CacheFixture.run { fixture in
            fixture.origin.serve("/film", .generated(length: 1000, cacheControl: "max-age=60"))
            try await fixture.withCache { cache in
                let handle = try await cache.downloads.start(fixture.request("/film"))
                try await handle.wait()
                let probe = Probe(handle)
                let executor = probe.executor()
                let consumer = Task(executorPreference: executor) {
                    for await _ in handle.progress {}
                }
                // The first is the start of the task, the others are resumed by reports.
                while probe.wasFree.withLock({ $0.count }) < 4 {
                    await handle.setPriority(.high)
                }
                consumer.cancel()
                await consumer.value
                #expect(probe.wasFree.withLock { $0.allSatisfy { $0 } })
            }
        }
    }

    @Test("a watcher gets the last status, and then the end, whatever else is reported meanwhile")
    func lastStatusComesLast() async throws {
        try await CacheFixture.run { fixture in
            for number in 0..<20 {
                let path = "/\(number)"
                fixture.origin.serve(path, .generated(length: 1000, cacheControl: "max-age=60"))
                try await fixture.withCache { cache in
                    let handle = try await cache.downloads.start(fixture.request(path))
                    let consumers = (0..<3).map { _ in
                        Task { await handle.progress.reduce(nil) { $1.state } }
                    }
                    try await handle.wait()
                    await withTaskGroup { group in
                        for priority in RequestPriority.allCases {
                            group.addTask { await handle.setPriority(priority) }
                        }
                        group.addTask { await handle.acknowledge() }
                    }
                    for consumer in consumers { #expect(await consumer.value == .finished) }
                }
            }
        }
    }
}
