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

    /// Runs the consumer on a thread of its own; while it is armed, each resumption of the consumer
    /// is followed by another report, a hundred times.
    private final class Repeater: Sendable {
        let runs = Guarded(0)
        let tellsOfCaller = Guarded(0)
        let isArmed = Guarded(false)
        private let reports = Guarded(0)
        private let handle: DownloadHandle
        private let caller = DispatchQueue(label: "caller")
        private let mark = DispatchSpecificKey<Bool>()

        init(_ handle: DownloadHandle) {
            self.handle = handle
            caller.setSpecific(key: mark, value: true)
        }

        /// Reports on a thread that must not wait; another may tell in its place.
        func report() async {
            reports.withLock { $0 = 0 }
            await withCheckedContinuation { continuation in
                caller.async { [handle] in
                    handle.job.report(isForced: true)
                    continuation.resume()
                }
            }
        }

        func executor() -> IOExecutor {
            IOExecutor { [self] job, executor in
                let didRun = DispatchSemaphore(value: 0)
                Thread.run { [self] in
                    job.runSynchronously(on: executor)
                    runs.withLock { $0 += 1 }
                    didRun.signal()
                }
                guard isArmed.withLock(\.self) else { return }
                if DispatchQueue.getSpecific(key: mark) == true {
                    tellsOfCaller.withLock { $0 += 1 }
                }
                // The consumer waits for the next status by then.
                didRun.wait()
                let isLast = reports.withLock { count in
                    count += 1
                    return count >= 100
                }
                if !isLast { handle.job.report(isForced: true) }
            }
        }
    }

    @Test("a thread that reports tells once, however much news follows")
    func tellsOnce() async throws {
        try await CacheFixture.run { fixture in
            fixture.origin.serve("/film", .generated(length: 1000, cacheControl: "max-age=60"))
            try await fixture.withCache { cache in
                let handle = try await cache.downloads.start(fixture.request("/film"))
                try await handle.wait()
                let repeater = Repeater(handle)
                let executor = repeater.executor()
                let consumer = Task(executorPreference: executor) {
                    await handle.progress.reduce(nil) { $1.state }
                }
                while repeater.runs.withLock({ $0 == 0 }) { await Task.yield() }
                repeater.isArmed.withLock { $0 = true }
                while repeater.tellsOfCaller.withLock({ $0 == 0 }) { await repeater.report() }
                #expect(repeater.tellsOfCaller.withLock(\.self) == 1)
                repeater.isArmed.withLock { $0 = false }
                await handle.acknowledge()
                #expect(await consumer.value == .finished)
            }
        }
    }
}
