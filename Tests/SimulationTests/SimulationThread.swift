#if os(Linux)
import Glibc

/// A thread of a simulation, which runs only while it holds the baton.
final class SimulationThread: @unchecked Sendable {
    // Unchecked: only the holder of the baton touches anything here; the semaphores hand it on.
    enum State {
        /// Has no job.
        case idle
        /// Can go on at any time, or does.
        case runnable
        /// Waits for a lock.
        case waiting
    }

    let number: Int
    unowned let scheduler: SimulationScheduler
    var state = State.idle
    var lane = SimulationLane.cooperative
    var work: SimulationWork?
    /// What it is about to do.
    var label = ""
    /// The lock was tried in vain when so much progress had been made.
    var failedAt = -1
    /// Does not run before this step, as on a slow disk.
    var frozenUntil = 0
    /// Goes on before that step only where others have had much time.
    var isFrozenHard = false
    private let semaphore: UnsafeMutablePointer<sem_t>
    private var handle = pthread_t()

    init(number: Int, scheduler: SimulationScheduler) {
        self.number = number
        self.scheduler = scheduler
        semaphore = .allocate(capacity: 1)
        semaphore.initialize(to: sem_t())
        sem_init(semaphore, 0, 0)
    }

    deinit {
        sem_destroy(semaphore)
        semaphore.deallocate()
    }

    // MARK: The baton

    func wake() { sem_post(semaphore) }

    func waitForBaton() {
        while sem_wait(semaphore) != 0 {}
    }

    // MARK: The thread

    private static let key: pthread_key_t = {
        var key = pthread_key_t()
        pthread_key_create(&key, nil)
        return key
    }()

    /// The simulation's thread on which this is called; nil on any other.
    static var current: SimulationThread? {
        guard let pointer = pthread_getspecific(key) else { return nil }
        return Unmanaged<SimulationThread>.fromOpaque(pointer).takeUnretainedValue()
    }

    func start() {
        let context = Unmanaged.passRetained(self).toOpaque()
        let result = pthread_create(
            &handle,
            nil,
            { argument in
                guard let argument else { return nil }
                let thread = Unmanaged<SimulationThread>.fromOpaque(argument).takeRetainedValue()
                pthread_setspecific(
                    SimulationThread.key,
                    Unmanaged.passUnretained(thread).toOpaque()
                )
                thread.scheduler.runJobs(on: thread)
                pthread_setspecific(SimulationThread.key, nil)
                return nil
            },
            context
        )
        precondition(result == 0, "cannot start a thread: errno \(result)")
    }

    func join() { pthread_join(handle, nil) }
}

/// Where a job may run: so many at once as the real thing has threads.
enum SimulationLane: Int, CaseIterable {
    /// The runtime's pool.
    case cooperative
    /// The engine's threads for lookups and reads.
    case io
    /// The engine's threads for downloads and all that writes.
    case writing
}

/// What a thread does next.
struct SimulationWork {
    enum Kind {
        case job(UnownedJob)
        case ioJob(UnownedJob, UnownedTaskExecutor)
        case start(@Sendable () -> Void)
    }

    let number: Int
    let kind: Kind
}
#endif
