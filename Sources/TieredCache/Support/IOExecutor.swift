import CLinuxCalls
import DequeModule

#if canImport(Glibc)
import Glibc
#elseif canImport(Darwin)
import Darwin
#endif

/// A bounded pool of threads on which code may block on the disk.
///
/// A task that prefers this executor runs its disk calls right where they stand, without a hop per
/// call, and the cooperative pool never waits for a disk (invariant 7).
///
/// States of a thread: `idle` (waiting on the condition) → `running` (one job) → `idle`; all
/// threads leave when the executor is released and the queue is empty.
package final class IOExecutor: TaskExecutor {
    /// Takes a job that is to run on the executor, and runs it later.
    package typealias Runner = @Sendable (UnownedJob, UnownedTaskExecutor) -> Void

    private enum Place {
        case threads(Shared)
        /// None could be started yet.
        case noThreads(LateStart)
        case elsewhere(Runner)
    }

    private let place: Place

    /// Starts a thread that runs `body`; false where the machine has none left.
    typealias Starter =
        @Sendable (_ name: String, _ body: @escaping @Sendable () -> Void) -> Bool

    /// Starts `threads` threads, named `name-N`; fewer where the machine has no more.
    ///
    /// Where it has none, each job tries again to start one, and runs on the cooperative pool until
    /// that works: the one exception to invariant 7, which ``isWithoutThreads`` tells.
    package convenience init(threads: Int = 8, name: String = "tc-io") {
        self.init(threads: threads, name: name, start: Self.startThread)
    }

    init(threads: Int, name: String, start: @escaping Starter) {
        precondition(threads > 0)
        let shared = Shared()
        let started = (0..<threads).count { index in
            start("\(name)-\(index)") { shared.runUntilStopped() }
        }
        place =
            started > 0
            ? .threads(shared)
            : .noThreads(
                LateStart(shared) { start("\(name)-0") { shared.runUntilStopped() } }
            )
    }

    /// Starts no thread: `runner` gets each job, so that a simulation decides when it runs.
    package init(runner: @escaping Runner) {
        place = .elsewhere(runner)
    }

    deinit {
        switch place {
        case .threads(let shared): shared.stop()
        case .noThreads(let late): late.shared.stop()
        case .elsewhere: break
        }
    }

    /// Whether its jobs run on threads of its own; in a simulation all share one.
    var hasThreads: Bool {
        if case .elsewhere = place { false } else { true }
    }

    /// Whether no thread could be started yet, so that jobs block the cooperative pool.
    package var isWithoutThreads: Bool {
        if case .noThreads(let late) = place { !late.isRunning } else { false }
    }

    /// Whether the calling thread belongs to an executor, so that code may block on it.
    static var hasCurrentThread: Bool { tc_is_waiting_thread() }

    /// Whether the calling thread runs a job of an executor without threads of its own.
    static var hasCurrentJob: Bool {
        withUnsafeCurrentTask { task in
            guard #available(macOS 26.4, iOS 26.4, watchOS 26.4, tvOS 26.4, visionOS 26.4, *) else {
                return true  // It cannot be told.
            }
            let executor = task?.unownedTaskExecutor?.asTaskExecutor() as? IOExecutor
            if case .threads? = executor?.place { return false }
            return executor != nil
        }
    }

    /// Whether the calling thread is one of its own.
    var isCurrent: Bool {
        switch place {
        case .threads(let shared): shared.has(ThreadNumber.current)
        case .noThreads(let late): late.shared.has(ThreadNumber.current)
        case .elsewhere: false
        }
    }

    package func enqueue(_ job: consuming ExecutorJob) {
        switch place {
        case .threads(let shared):
            shared.push(UnownedJob(job), executor: asUnownedTaskExecutor())
        case .noThreads(let late) where late.hasStarted():
            late.shared.push(UnownedJob(job), executor: asUnownedTaskExecutor())
        case .noThreads:
            globalConcurrentExecutor.enqueue(job)
        case .elsewhere(let runner):
            runner(UnownedJob(job), asUnownedTaskExecutor())
        }
    }

    static func startThread(
        named name: String,
        body: @escaping @Sendable () -> Void
    ) -> Bool {
        let context = Unmanaged.passRetained(ThreadStart(name: name, body: body))
        #if canImport(Glibc)
        var thread = pthread_t()
        #else
        var thread: pthread_t?
        #endif
        let result = SignalMask.blocking {
            pthread_create(&thread, nil, threadMain, context.toOpaque())
        }
        guard result == 0 else {
            context.release()
            return false
        }
        #if canImport(Glibc)
        pthread_detach(thread)
        #else
        if let thread { pthread_detach(thread) }
        #endif
        return true
    }
}

/// The one thread of an executor that has got none yet.
private final class LateStart: Sendable {
    let shared: Shared
    private let start: @Sendable () -> Bool
    private let isStarted = Guarded(false)

    init(_ shared: Shared, start: @escaping @Sendable () -> Bool) {
        (self.shared, self.start) = (shared, start)
    }

    var isRunning: Bool { isStarted.withLock { $0 } }

    /// Whether the thread runs; tries to start it, if not.
    func hasStarted() -> Bool {
        isStarted.withLock { isStarted in
            if !isStarted { isStarted = start() }
            return isStarted
        }
    }
}

/// What a new thread is given.
private final class ThreadStart {
    let name: String
    let body: @Sendable () -> Void

    init(name: String, body: @escaping @Sendable () -> Void) {
        self.name = name
        self.body = body
    }
}

#if canImport(Glibc)
private func threadMain(_ argument: UnsafeMutableRawPointer?) -> UnsafeMutableRawPointer? {
    runThread(argument)
}
#else
private func threadMain(_ argument: UnsafeMutableRawPointer) -> UnsafeMutableRawPointer? {
    runThread(argument)
}
#endif

private func runThread(_ argument: UnsafeMutableRawPointer?) -> UnsafeMutableRawPointer? {
    guard let argument else { return nil }
    let start = Unmanaged<ThreadStart>.fromOpaque(argument).takeRetainedValue()
    #if canImport(Glibc)
    tc_set_thread_name(start.name)
    #endif
    start.body()
    return nil
}

/// The queue that threads and executor share; it outlives the executor until the threads leave.
///
/// One thread at a time is on its way from sleep to the queue; when it has got there and finds more
/// than it takes, it wakes the next. So jobs that come faster than a thread wakes, and of which the
/// threads that are awake may do some, wake no more threads than there is work for.
private final class Shared: @unchecked Sendable {
    // Unchecked: all that changes is only touched while `mutex` is held. A condition variable is
    // needed, which `Synchronization` does not have.
    private struct Work {
        let job: UnownedJob
        let executor: UnownedTaskExecutor
    }

    private let mutex = UnsafeMutablePointer<pthread_mutex_t>.allocate(capacity: 1)
    private let condition = UnsafeMutablePointer<pthread_cond_t>.allocate(capacity: 1)
    private var queue = Deque<Work>()
    private var stopped = false
    /// Those that take work.
    private var threads: Set<UInt64> = []
    /// How many threads sleep, or are on their way from there.
    private var sleeping = 0
    /// Whether one of them was woken and has not got to the queue.
    private var isWaking = false

    init() {
        mutex.initialize(to: pthread_mutex_t())
        condition.initialize(to: pthread_cond_t())
        pthread_mutex_init(mutex, nil)
        pthread_cond_init(condition, nil)
    }

    deinit {
        pthread_cond_destroy(condition)
        pthread_mutex_destroy(mutex)
        condition.deallocate()
        mutex.deallocate()
    }

    func push(_ job: UnownedJob, executor: UnownedTaskExecutor) {
        pthread_mutex_lock(mutex)
        queue.append(Work(job: job, executor: executor))
        let wakes = takeWaking()
        pthread_mutex_unlock(mutex)
        if wakes { pthread_cond_signal(condition) }
    }

    /// Whether the caller is to wake a thread.
    private func takeWaking() -> Bool {
        guard sleeping > 0, !isWaking else { return false }
        isWaking = true
        return true
    }

    func stop() {
        pthread_mutex_lock(mutex)
        stopped = true
        pthread_mutex_unlock(mutex)
        pthread_cond_broadcast(condition)
    }

    func runUntilStopped() {
        change { $0.insert(ThreadNumber.current) }
        tc_set_waiting_thread()
        while let work = next() {
            work.job.runSynchronously(on: work.executor)
        }
        change { $0.remove(ThreadNumber.current) }
    }

    private func change(_ body: (inout Set<UInt64>) -> Void) {
        pthread_mutex_lock(mutex)
        body(&threads)
        pthread_mutex_unlock(mutex)
    }

    /// Whether a thread, which is alive, takes work from here.
    func has(_ thread: UInt64) -> Bool {
        pthread_mutex_lock(mutex)
        defer { pthread_mutex_unlock(mutex) }
        return threads.contains(thread)
    }

    private func next() -> Work? {
        pthread_mutex_lock(mutex)
        // A loop: a condition variable may wake without a signal (pthread_cond_wait(3)).
        while queue.isEmpty {
            if stopped {
                pthread_mutex_unlock(mutex)
                return nil
            }
            sleeping += 1
            pthread_cond_wait(condition, mutex)
            sleeping -= 1
            isWaking = false
        }
        let work = queue.removeFirst()
        let wakes = !queue.isEmpty && takeWaking()
        pthread_mutex_unlock(mutex)
        if wakes { pthread_cond_signal(condition) }
        return work
    }
}

extension IOExecutor {
    /// Runs `body`, which may block on the disk, on one of the threads.
    package func run<Value: Sendable, Failure: Error>(
        _ body: @Sendable () throws(Failure) -> Value
    ) async throws(Failure) -> Value {
        let result: Result<Value, Failure> = await withTaskExecutorPreference(self) {
            await Self.perform(body)
        }
        return try result.get()
    }

    @concurrent
    private static func perform<Value: Sendable, Failure: Error>(
        _ body: @Sendable () throws(Failure) -> Value
    ) async -> Result<Value, Failure> {
        do throws(Failure) {
            return .success(try body())
        } catch {
            return .failure(error)
        }
    }
}
