import Foundation
import SystemPackage
import Testing
import TieredCacheTesting

@_spi(Benchmarks) @testable import TieredCache

/// What tests of two things at once are made of: a file system that lets the second in between two
/// calls of the first, and a thread for it.
enum DiskRace {
    static let film = bytes(2 << 20, seed: 3)

    /// What is done at a call, once.
    final class Intruder: Sendable {
        private struct Plan {
            let call: FileSystemError.Call
            let suffix: String
            let work: @Sendable () -> Void
        }

        private let plan = Guarded<Plan?>(nil)
        private let closing = Guarded<(file: OpenFile, work: @Sendable () -> Void)?>(nil)

        /// - Parameters:
        ///   - call: before which call.
        ///   - suffix: how the name ends that the call is given.
        ///   - work: what is done.
        func arm(
            at call: FileSystemError.Call,
            of suffix: String = "",
            _ work: @escaping @Sendable () -> Void
        ) {
            plan.withLock { $0 = Plan(call: call, suffix: suffix, work: work) }
        }

        /// - Parameters:
        ///   - file: before which file is closed.
        ///   - work: what is done.
        func arm(atClosing file: OpenFile, _ work: @escaping @Sendable () -> Void) {
            closing.withLock { $0 = (file, work) }
        }

        func willClose(_ file: OpenFile) {
            let due = closing.withLock { closing -> (@Sendable () -> Void)? in
                guard let known = closing, known.file == file else { return nil }
                closing = nil
                return known.work
            }
            due?()
        }

        func didCall(_ call: FileSystemError.Call, _ name: String) {
            let due = plan.withLock { plan -> (@Sendable () -> Void)? in
                guard let known = plan, known.call == call, name.hasSuffix(known.suffix) else {
                    return nil
                }
                plan = nil
                return known.work
            }
            due?()
        }
    }

    /// Says whether a thread waits for a lock.
    final class NotingWaiter: LockWaiter {
        private let waiting = Guarded(0)

        var isAwaited: Bool { waiting.withLock { $0 > 0 } }

        func wait(until attempt: () -> Bool) {
            if attempt() { return }
            waiting.withLock { $0 += 1 }
            defer { waiting.withLock { $0 -= 1 } }
            while !attempt() { sched_yield() }
        }
    }

    /// Opens a store whose calls the intruder sees; bodies of 1 MiB are huge, and 128 KiB of those
    /// stay.
    static func open(
        _ disk: TestDisk,
        _ intruder: Intruder,
        limit: Int64 = 64 << 20,
        waiter: NotingWaiter? = nil,
        didLeave: (@Sendable (DiskRemoval) -> Void)? = nil
    ) throws -> DiskStore {
        var options = disk.options(limit: limit)
        options.hugeBody = 1 << 20
        options.headLength = 131_072
        options.lockWaiter = waiter
        options.didLeave = didLeave
        let fileSystem = WatchedFileSystem(
            disk.fileSystem,
            watchClosing: { intruder.willClose($0) },
            watch: { intruder.didCall($0, $1) }
        )
        return try DiskStore(options, fileSystem: fileSystem, timeSource: disk.time)
    }

    /// A thread that works beside the test's.
    final class Worker: Sendable {
        private let isDone = Guarded(true)

        /// Runs `work` until it has ended or waits for a lock; it may go on then.
        func run(
            watching waiter: NotingWaiter,
            _ work: @escaping @Sendable () throws -> Void
        ) {
            start(work)
            while !isDone.withLock({ $0 }), !waiter.isAwaited { sched_yield() }
        }

        func start(_ work: @escaping @Sendable () throws -> Void) {
            isDone.withLock { $0 = false }
            Thread { [self] in
                do {
                    try work()
                } catch {
                    Issue.record(error)
                }
                isDone.withLock { $0 = true }
            }.start()
        }

        func join() {
            while !isDone.withLock({ $0 }) { sched_yield() }
        }
    }
}
