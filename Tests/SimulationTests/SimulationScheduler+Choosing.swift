#if os(Linux)
import TieredCacheTesting

/// How wildly a simulation goes about it.
struct SimulationPace {
    /// How many threads each lane has.
    var widths = [3, 4, 4]
    /// In how many of a hundred hand-overs another thread may go on.
    var switches = 50
    /// Whether threads are now and then kept from running, as by a slow disk.
    var freezes = true
    /// About how many hand-overs lie between two such times.
    var freezeEvery = 100
    /// A simulation that takes more never ends.
    var maximumSteps = 3_000_000
    /// Nor does one that takes longer by the machine's clock.
    var maximumDuration = Duration.seconds(300)
}

extension SimulationScheduler {
    /// What a thread is about to do.
    ///
    /// Threads are stopped more often before they change the disk: what is decided and not done yet
    /// is what others must not contradict.
    enum Place {
        case anywhere
        case change
        /// A part of a file is about to go, and others may want to write it again.
        case punch

        /// How often a thread is stopped there, in about as many times as are one elsewhere.
        var weight: Int {
            switch self {
            case .anywhere: 1
            case .change: 6
            case .punch: 15
            }
        }
    }

    enum Choice {
        /// A thread that stands in the middle of its job.
        case goOn(SimulationThread)
        /// A thread that has been given a job.
        case start(SimulationThread)
        /// Nothing is left.
        case end
        /// Nothing can go on, and a thread waits.
        case stuck(String)
    }

    /// Chooses the thread that gets the baton.
    func choose() -> Choice {
        while true {
            if let choice = chooseAmongRunnable() { return choice }
            if let thread = thaw() { return .goOn(thread) }
            if hasFrozen {
                advance()
                continue
            }
            if threads.contains(where: { $0.state == .waiting }) {
                return .stuck("every thread waits for a lock:\n\(waitingThreads)")
            }
            if time.sleeperCount > 0 {
                advance()
                continue
            }
            return isRootDone ? .end : .stuck("nothing can run, and clients wait")
        }
    }

    private func chooseAmongRunnable() -> Choice? {
        let step = stepCount
        let going = threads.filter { thread in
            switch thread.state {
            case .idle: false
            case .runnable: thread.frozenUntil <= step
            case .waiting: thread.failedAt != progress
            }
        }
        let lanes = SimulationLane.allCases.filter { lane in
            !ready[lane.rawValue].isEmpty && room(in: lane) > 0
        }
        guard going.count + lanes.count > 0 else { return nil }
        let number = die.roll(going.count + lanes.count)
        if number < going.count { return .goOn(going[number]) }
        return .start(start(in: lanes[number - going.count]))
    }

    private func room(in lane: SimulationLane) -> Int {
        pace.widths[lane.rawValue] - threads.count { $0.state != .idle && $0.lane == lane }
    }

    /// Gives one of the first jobs of a lane to a thread.
    private func start(in lane: SimulationLane) -> SimulationThread {
        let among = min(ready[lane.rawValue].count, pace.widths[lane.rawValue])
        let work = ready[lane.rawValue].remove(at: die.roll(among))
        let thread = threads.first { $0.state == .idle } ?? newThread()
        thread.state = .runnable
        thread.lane = lane
        thread.work = work
        trace.add(step: stepCount, thread: thread.number, "begins job \(work.number) (\(lane))")
        return thread
    }

    private func newThread() -> SimulationThread {
        let thread = SimulationThread(number: threads.count, scheduler: self)
        threads.append(thread)
        thread.start()
        return thread
    }

    private func advance() {
        let step = time.advanceToNextDeadline()
        trace.add(step: stepCount, thread: -1, "time goes on by \(step ?? .zero)")
    }

    private var frozen: [SimulationThread] {
        threads.filter { $0.state == .runnable && $0.frozenUntil > stepCount }
    }

    private var hasFrozen: Bool { !frozen.isEmpty }

    /// One of those on a slow disk, if nothing else can run; it may be so slow that a little time
    /// goes by first, but none of the engine's patience.
    private func thaw() -> SimulationThread? {
        let frozen = frozen
        guard !frozen.isEmpty else { return nil }
        let thread = die.pick(frozen)
        let odds = thread.isFrozenHard ? 100 : 20
        if let wait = time.timeToNextDeadline, wait < .milliseconds(200),
            die.chance(odds - 1, of: odds)
        {
            return nil
        }
        thread.frozenUntil = 0
        return thread
    }

    private var waitingThreads: String {
        threads.filter { $0.state == .waiting }
            .map { "  thread \($0.number) (\($0.lane)), after: \($0.label)" }
            .joined(separator: "\n")
    }
}

/// What happened: a hash of all of it, and the last steps in words.
struct SimulationTrace {
    /// How many of the last steps are kept.
    var capacity = 400
    private var last: [(step: Int, thread: Int, label: String)] = []
    private var position = 0
    /// Equal for equal runs.
    private(set) var hash: UInt64 = 0xCBF2_9CE4_8422_2325

    mutating func add(step: Int, thread: Int, _ label: String) {
        mix(UInt64(truncatingIfNeeded: thread))
        for byte in label.utf8 { mix(UInt64(byte)) }
        if last.count < capacity {
            last.append((step, thread, label))
        } else {
            last[position] = (step, thread, label)
            position = (position + 1) % capacity
        }
    }

    private mutating func mix(_ value: UInt64) {
        hash = (hash ^ value) &* 0x100_0000_01B3
    }

    private var ordered: [(step: Int, thread: Int, label: String)] {
        Array(last[position...] + last[..<position])
    }

    /// The last steps, a line each.
    func lastSteps(_ count: Int) -> String {
        ordered.suffix(count)
            .map { "  \($0.step) [\($0.thread < 0 ? "clock" : String($0.thread))] \($0.label)" }
            .joined(separator: "\n")
    }
}
#endif
