#if os(Linux)
import Glibc
import Synchronization
import TieredCacheTesting

/// Orders every job, I/O call and timer of a simulation by a seed.
///
/// Each job has a thread, so that it can stop in the middle of synchronous code, but only one
/// thread holds the baton. It is handed on, to whom the die says, at each call of ``handOver(_:)``,
/// at each wait for a lock, and when a job ends. When nothing can run, the clock goes to its next
/// timer.
final class SimulationScheduler: @unchecked Sendable {
    // Unchecked: only the holder of the baton touches anything here, but for `steps`.
    let time: ManualTimeSource
    let pace: SimulationPace
    var die: Die
    var trace = SimulationTrace()
    /// Grows with each step of a thread that does not wait for a lock.
    var progress = 0
    var threads: [SimulationThread] = []
    var ready: [[SimulationWork]] = SimulationLane.allCases.map { _ in [] }
    var failure: String?
    var isRootDone = false
    private var isOver = false
    private var nextWork = 0
    private let steps = Atomic<Int>(0)
    private let beginning = ContinuousClock.now
    private let controller: UnsafeMutablePointer<sem_t>
    private static let locking = "takes a lock"

    init(seed: UInt64, pace: SimulationPace, time: ManualTimeSource) {
        die = Die(seed: seed)
        self.pace = pace
        self.time = time
        controller = .allocate(capacity: 1)
        controller.initialize(to: sem_t())
        sem_init(controller, 0, 0)
    }

    deinit {
        sem_destroy(controller)
        controller.deallocate()
    }

    /// How many steps there were.
    var stepCount: Int { steps.load(ordering: .relaxed) }

    // MARK: The whole

    /// Runs `root`, and all that comes of it, until nothing is left to do.
    ///
    /// After a failure the threads stay where they are, for good.
    func run(_ root: @escaping @Sendable () async -> Void) {
        precondition(RuntimeHook.install(), "this runtime has no hook for its jobs")
        enqueue(
            .start { [self] in
                Task.detached {
                    await root()
                    self.isRootDone = true
                }
            },
            in: .cooperative
        )
        if case .start(let thread) = choose() { thread.wake() }
        waitForEnd()
        guard failure == nil else { return }
        isOver = true
        for thread in threads { thread.wake() }
        for thread in threads { thread.join() }
    }

    private func waitForEnd() {
        var seen = -1
        var deadline = timespec()
        while true {
            clock_gettime(CLOCK_REALTIME, &deadline)
            deadline.tv_sec += 60
            if sem_timedwait(controller, &deadline) == 0 { return }
            guard errno == ETIMEDOUT else { continue }
            let now = stepCount
            if now == seen {
                failure = "the thread with the baton waits: a lock is held over a hand-over"
                return
            }
            seen = now
        }
    }

    /// Ends the simulation with a failure; never returns on a thread of it.
    func fail(_ message: String) {
        if failure == nil { failure = message }
        sem_post(controller)
        guard let thread = SimulationThread.current else { return }
        while true { thread.waitForBaton() }
    }

    private func end() { sem_post(controller) }

    // MARK: Jobs

    func enqueue(_ kind: SimulationWork.Kind, in lane: SimulationLane) {
        nextWork += 1
        ready[lane.rawValue].append(SimulationWork(number: nextWork, kind: kind))
    }

    /// Runs jobs until the simulation is over.
    func runJobs(on thread: SimulationThread) {
        thread.waitForBaton()
        while !isOver {
            if let work = thread.work {
                thread.work = nil
                perform(work)
                note(thread, "ends job \(work.number)")
                thread.state = .idle
            }
            passOn(from: thread)
        }
    }

    private func perform(_ work: SimulationWork) {
        switch work.kind {
        case .job(let job): RuntimeHook.run(job)
        case .ioJob(let job, let executor): job.runSynchronously(on: executor)
        case .start(let body): body()
        }
    }

    // MARK: Handing over

    /// A point at which another thread may go on before this one does.
    ///
    /// - Parameter place: what the thread is about to do.
    func handOver(_ label: String, _ place: Place = .anywhere) {
        guard let thread = SimulationThread.current else { return }
        note(thread, label)
        if let steps = stop(at: place) {
            thread.frozenUntil = stepCount + steps
            thread.isFrozenHard = place == .punch
        } else if !die.chance(pace.switches, of: 100) {
            return
        }
        passOn(from: thread)
    }

    /// For how many steps a thread is stopped; nil for not at all.
    private func stop(at place: Place) -> Int? {
        guard pace.freezes, die.chance(place.weight, of: pace.freezeEvery) else { return nil }
        return die.pick(place == .punch ? [300, 1000, 3000] : [10, 100, 1000, 3000])
    }

    /// Whether a thread stands before or behind a call about a file.
    func isInCall(about name: some StringProtocol) -> Bool {
        threads.contains { $0.state != .idle && $0.label.contains(name) }
    }

    /// Returns once `attempt` has returned true, which is tried again whenever another thread has
    /// done something.
    func waitForLock(until attempt: () -> Bool) {
        guard let thread = SimulationThread.current else {
            while !attempt() { sched_yield() }
            return
        }
        handOver(Self.locking)
        while !attempt() {
            note(thread, "waits for a lock", isProgress: false)
            thread.state = .waiting
            thread.failedAt = progress
            passOn(from: thread)
        }
        thread.state = .runnable
    }

    /// Writes down what happens, without giving the baton on.
    func note(_ label: String) {
        if let thread = SimulationThread.current { note(thread, label) }
    }

    private func note(_ thread: SimulationThread, _ label: String, isProgress: Bool = true) {
        if isProgress, label != Self.locking { thread.label = label }
        let step = steps.wrappingAdd(1, ordering: .relaxed).newValue
        if isProgress { progress += 1 }
        trace.add(step: step, thread: thread.number, label)
        if step > pace.maximumSteps { fail("no end after \(step) steps") }
        // Seldom, since it costs more than a step.
        guard step % 1024 == 0 else { return }
        let age = ContinuousClock.now - beginning
        if age > pace.maximumDuration { fail("no end after \(age), \(step) steps") }
    }

    private func passOn(from thread: SimulationThread) {
        switch choose() {
        case .goOn(let next), .start(let next):
            guard next !== thread else { return }
            next.wake()
            thread.waitForBaton()
        case .end:
            end()
            thread.waitForBaton()
        case .stuck(let message):
            fail(message)
        }
    }
}
#endif
