#if os(Linux) && DEBUG && HTTPClient
import CLinuxCalls
import Foundation
import Glibc
import Synchronization

@testable import TieredCache

/// Two threads, of which one at a time runs: one in the place of callers, of the runtime's pool and
/// of the network, one in the place of those that may wait for the disk.
///
/// All jobs are queued in one queue and run in that order, so that a walk is always the same.
final class WalkThreads: @unchecked Sendable {
    // Unchecked: `condition` guards what changes.
    private enum Work {
        case pool(UnownedJob)
        case disk(UnownedJob, UnownedTaskExecutor)
        case network(@Sendable () -> Void)
    }

    private let condition = NSCondition()
    private var queue: [Work] = []
    private var hasEnded = false
    private var isStopped = false
    private var jobs: [String: Int] = [:]
    /// What the thread for the disk does; the other one waits for it.
    private var handed: Work?

    /// Runs `body` with a pair of threads: the calling one, which must not be one of the pool, and a
    /// new one.
    static func with<Value>(_ body: (WalkThreads) throws -> Value) throws -> Value {
        let threads = WalkThreads()
        let disk = Thread { threads.runDisk() }
        disk.start()
        threads.enter()
        defer {
            threads.leave()
            threads.stop()
        }
        return try RuntimePool.whileTaken { try body(threads) }
    }

    // MARK: Which thread this is

    private static let key: pthread_key_t = {
        var key = pthread_key_t()
        let result = pthread_key_create(&key, nil)
        precondition(result == 0, "no key for the threads of a walk: errno \(result)")
        return key
    }()

    /// The pair of threads of which this is one; nil on any other.
    static var current: WalkThreads? {
        guard let pointer = pthread_getspecific(key) else { return nil }
        return Unmanaged<WalkThreads>.fromOpaque(pointer).takeUnretainedValue()
    }

    private func enter() {
        pthread_setspecific(Self.key, Unmanaged.passUnretained(self).toOpaque())
    }

    private func leave() {
        pthread_setspecific(Self.key, nil)
    }

    // MARK: Running

    /// Runs `body` in a task, and all that comes of it, until nothing is left to do.
    func run<Value: Sendable>(
        _ body: @escaping @Sendable () async throws -> Value
    ) throws -> Value {
        let outcome = Guarded<Result<Value, any Error>?>(nil)
        change { $0.hasEnded = false }
        Task.detached {
            do {
                let value = try await body()
                outcome.withLock { $0 = .success(value) }
            } catch {
                outcome.withLock { $0 = .failure(error) }
            }
            self.change { $0.hasEnded = true }
        }
        while let work = next() {
            guard case .disk = work else {
                perform(work)
                continue
            }
            performOnDisk(work)
        }
        guard let outcome = outcome.withLock({ $0 }) else {
            throw WalkFailure("a walk ends without an outcome")
        }
        return try outcome.get()
    }

    /// The next work; nil where nothing is left of a walk that has ended.
    private func next() -> Work? {
        condition.lock()
        defer { condition.unlock() }
        // A walk that waits for a time waits for the runtime's own threads.
        while queue.isEmpty {
            if hasEnded { return nil }
            condition.wait()
        }
        return queue.removeFirst()
    }

    private func performOnDisk(_ work: Work) {
        condition.lock()
        handed = work
        condition.broadcast()
        while handed != nil { condition.wait() }
        condition.unlock()
    }

    private func runDisk() {
        tc_set_waiting_thread()
        enter()
        defer { leave() }
        while let work = nextOnDisk() {
            perform(work)
            change { $0.handed = nil }
        }
    }

    private func nextOnDisk() -> Work? {
        condition.lock()
        defer { condition.unlock() }
        while handed == nil, !isStopped { condition.wait() }
        return handed
    }

    private func perform(_ work: Work) {
        switch work {
        case .pool(let job): RuntimePool.run(job)
        case .disk(let job, let executor): job.runSynchronously(on: executor)
        case .network(let body): body()
        }
    }

    private func stop() {
        condition.lock()
        isStopped = true
        let rest = queue
        queue = []
        condition.broadcast()
        condition.unlock()
        for work in rest { giveAway(work) }
    }

    private func change(_ body: (WalkThreads) -> Void) {
        condition.lock()
        body(self)
        condition.broadcast()
        condition.unlock()
    }

    // MARK: Queueing

    /// Takes the jobs so far, by the threads that they were queued for.
    func takeJobs() -> [String: Int] {
        condition.lock()
        defer {
            jobs = [:]
            condition.unlock()
        }
        return jobs
    }

    /// Threads that may wait for the disk.
    ///
    /// - Parameter name: what their jobs are counted as.
    /// - Returns: an executor for them.
    func executor(_ name: String) -> IOExecutor {
        IOExecutor { job, executor in self.enqueue(.disk(job, executor), as: name) }
    }

    /// Queues a job of the runtime's pool.
    fileprivate func enqueueInPool(_ job: UnownedJob) { enqueue(.pool(job), as: "pool") }

    /// Queues what a connection does.
    ///
    /// - Parameters:
    ///   - isHandover: whether it is asked for by another thread, and so a job that is counted.
    ///   - body: what it does.
    func onNetwork(isHandover: Bool = false, _ body: @escaping @Sendable () -> Void) {
        enqueue(.network(body), as: isHandover ? "network" : nil)
    }

    private func enqueue(_ work: Work, as name: String?) {
        condition.lock()
        if let name { jobs[name, default: 0] += 1 }
        let isLate = isStopped
        if !isLate { queue.append(work) }
        condition.broadcast()
        condition.unlock()
        if isLate { giveAway(work) }
    }

    /// Has work that comes after the walk done elsewhere.
    private func giveAway(_ work: Work) {
        DispatchQueue.global().async { self.perform(work) }
    }
}

/// The runtime's pool of threads, the jobs of which a walk takes over.
private enum RuntimePool {
    private typealias Original = @convention(c) (UnsafeRawPointer) -> Void
    // The runtime calls hooks with Swift's convention; for one or two pointers it is C's.
    private typealias Hook = @convention(c) (UnsafeRawPointer, UnsafeRawPointer) -> Void

    /// The address of the hook that was there before; 0 for none.
    private static let previous = Atomic<UInt>(0)

    private static let enqueue: Hook = { job, original in
        if let threads = WalkThreads.current {
            return threads.enqueueInPool(unsafeBitCast(job, to: UnownedJob.self))
        }
        let previous = previous.load(ordering: .relaxed)
        guard previous != 0 else { return unsafeBitCast(original, to: Original.self)(job) }
        unsafeBitCast(previous, to: Hook.self)(job, original)
    }

    /// Runs `body`; what threads of a walk enqueue in the pool meanwhile comes to ``WalkThreads``.
    static func whileTaken<Value>(_ body: () throws -> Value) throws -> Value {
        guard let program = dlopen(nil, RTLD_NOW),
            let hook = dlsym(program, "swift_task_enqueueGlobal_hook")?
                .assumingMemoryBound(to: UInt.self)
        else { throw WalkFailure("this runtime has no hook for its jobs") }
        let before = hook.pointee
        previous.store(before, ordering: .relaxed)
        hook.pointee = unsafeBitCast(enqueue, to: UInt.self)
        defer { hook.pointee = before }
        return try body()
    }

    static func run(_ job: UnownedJob) {
        // The executor without identity is the pool; the library gives it no name.
        job.runSynchronously(
            on: unsafeBitCast((UInt(0), UInt(0)), to: UnownedSerialExecutor.self)
        )
    }
}

/// Says how many tasks the process has made: their numbers are consecutive.
enum TaskNumbers {
    /// Runs a job where it is, and keeps its number.
    private final class Reader: TaskExecutor {
        let number = Atomic<UInt64>(0)

        func enqueue(_ job: consuming ExecutorJob) {
            let job = UnownedJob(job)
            // The number has no name, but a place in the description: "ExecutorJob(id: 1)".
            let digits = job.description.drop { !$0.isNumber }.prefix { $0.isNumber }
            number.store(UInt64(digits) ?? 0, ordering: .relaxed)
            job.runSynchronously(on: asUnownedTaskExecutor())
        }
    }

    /// Makes a task, of which nothing else comes.
    ///
    /// - Returns: its number.
    static func next() throws -> UInt64 {
        let reader = Reader()
        Task.detached(executorPreference: reader) {}
        let number = reader.number.load(ordering: .relaxed)
        guard number > 0 else { throw WalkFailure("this runtime does not tell a task's number") }
        return number
    }
}
#endif
