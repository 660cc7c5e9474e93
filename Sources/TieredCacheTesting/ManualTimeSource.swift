public import HTTPCaching
public import TieredCache

/// A clock that stands still until the test advances it.
///
/// Wall time and monotonic time advance together. Sleeping tasks wake in the order of their
/// deadlines, and of arrival where deadlines are equal. A woken task runs on another thread; to let
/// it see its own deadline as the present, use ``advanceToNextDeadline()``.
public final class ManualTimeSource: TimeSource {
    private struct Sleeper {
        let id: UInt64
        let deadline: MonotonicTime
        let continuation: CheckedContinuation<Void, any Error>
    }

    private struct State {
        var wall: WallTime
        var monotonic: MonotonicTime
        var nextID: UInt64 = 0
        /// Ordered by deadline, then by arrival.
        var sleepers: [Sleeper] = []
        var cancelled: Set<UInt64> = []
        var arrivals: [(arrival: Arrival, continuation: CheckedContinuation<Void, Never>)] = []

        func hasSeen(_ arrival: Arrival) -> Bool {
            switch arrival {
            case .count(let count): sleepers.count >= count
            case .deadline(let end): sleepers.first.map { $0.deadline <= end } ?? false
            }
        }
    }

    /// What a test waits for.
    private enum Arrival {
        /// A number of sleeping tasks.
        case count(Int)
        /// A sleeping task with a deadline up to the given instant.
        case deadline(MonotonicTime)
    }

    private let state: Guarded<State>

    /// Creates a clock.
    ///
    /// - Parameters:
    ///   - wall: the date to begin with; by default 2026-01-01T00:00:00Z.
    ///   - monotonic: the instant to begin with.
    public init(
        wall: WallTime = WallTime(seconds: 1_767_225_600),
        monotonic: MonotonicTime = MonotonicTime(nanoseconds: 1_000_000_000)
    ) {
        state = Guarded(State(wall: wall, monotonic: monotonic))
    }

    /// The present date.
    public func wallTime() -> WallTime {
        state.withLock { $0.wall }
    }

    /// The present instant.
    public func monotonicTime() -> MonotonicTime {
        state.withLock { $0.monotonic }
    }

    /// Sets the date without advancing the monotonic time, as an administrator might.
    public func setWallTime(_ wall: WallTime) {
        state.withLock { $0.wall = wall }
    }

    /// The number of sleeping tasks.
    public var sleeperCount: Int {
        state.withLock { $0.sleepers.count }
    }

    /// Advances the time and wakes the tasks that are due, deadline by deadline.
    ///
    /// A woken task runs on another thread: one that sleeps again before this call returns may miss
    /// its next deadline. Wait for it with ``waitForSleepers(_:)``, then advance again.
    public func advance(by duration: Duration) {
        precondition(duration >= .zero, "time does not run backwards")
        let target = state.withLock { $0.monotonic.advanced(by: duration) }
        while let sleeper = nextDue(until: target) {
            sleeper.resume()
        }
    }

    /// The time to the next deadline; nil if no task sleeps.
    public var timeToNextDeadline: Duration? {
        state.withLock { state in
            state.sleepers.first.map { max(state.monotonic.duration(to: $0.deadline), .zero) }
        }
    }

    /// Advances to the next deadline and wakes the tasks that are due then.
    ///
    /// - Returns: the time advanced, or `nil` if no task sleeps.
    @discardableResult
    public func advanceToNextDeadline() -> Duration? {
        let step = state.withLock { state in
            state.sleepers.first.map { state.monotonic.duration(to: $0.deadline) }
        }
        guard let step else { return nil }
        advance(by: max(step, .zero))
        return step
    }

    /// Returns when at least `count` tasks are asleep.
    public func waitForSleepers(_ count: Int = 1) async {
        await wait { _ in .count(count) }
    }

    /// Returns when a task is asleep that advancing by `duration` would wake.
    public func waitForSleeper(within duration: Duration) async {
        await wait { .deadline($0.monotonic.advanced(by: duration)) }
    }

    private func wait(for arrival: @Sendable (State) -> Arrival) async {
        await withCheckedContinuation { continuation in
            let isThere = state.withLock { state in
                let arrival = arrival(state)
                guard !state.hasSeen(arrival) else { return true }
                state.arrivals.append((arrival, continuation))
                return false
            }
            if isThere { continuation.resume() }
        }
    }

    /// Sleeps until the test has advanced by `duration`; at once if that is not positive.
    public func sleep(for duration: Duration) async throws {
        try Task.checkCancellation()
        guard duration > .zero else { return }
        let id = state.withLock { state in
            state.nextID += 1
            return state.nextID
        }
        // A cancellation after the wake-up leaves a record.
        defer { state.withLock { _ = $0.cancelled.remove(id) } }
        try await withTaskCancellationHandler {
            try await withCheckedThrowingContinuation { continuation in
                enqueue(id, after: duration, continuation: continuation)
            }
        } onCancel: {
            cancel(id)
        }
    }

    private func enqueue(
        _ id: UInt64,
        after duration: Duration,
        continuation: CheckedContinuation<Void, any Error>
    ) {
        let arrived: [CheckedContinuation<Void, Never>]? = state.withLock { state in
            guard state.cancelled.remove(id) == nil else { return nil }
            let deadline = state.monotonic.advanced(by: duration)
            let place = state.sleepers.firstIndex { $0.deadline > deadline }
            state.sleepers.insert(
                Sleeper(id: id, deadline: deadline, continuation: continuation),
                at: place ?? state.sleepers.endIndex
            )
            let arrived = state.arrivals.filter { state.hasSeen($0.arrival) }
            state.arrivals = state.arrivals.filter { !state.hasSeen($0.arrival) }
            return arrived.map(\.continuation)
        }
        guard let arrived else {
            continuation.resume(throwing: CancellationError())
            return
        }
        for waiter in arrived { waiter.resume() }
    }

    /// Cancels a sleep.
    ///
    /// A cancellation that precedes the sleep is recorded.
    private func cancel(_ id: UInt64) {
        let sleeper: Sleeper? = state.withLock { state in
            guard let index = state.sleepers.firstIndex(where: { $0.id == id }) else {
                state.cancelled.insert(id)
                return nil
            }
            return state.sleepers.remove(at: index)
        }
        sleeper?.continuation.resume(throwing: CancellationError())
    }

    /// Advances to the next deadline up to `target` and removes its sleeper; without one, advances
    /// to `target`.
    private func nextDue(until target: MonotonicTime) -> CheckedContinuation<Void, any Error>? {
        state.withLock { state in
            guard let first = state.sleepers.first, first.deadline <= target else {
                Self.move(&state, to: target)
                return nil
            }
            Self.move(&state, to: first.deadline)
            return state.sleepers.removeFirst().continuation
        }
    }

    private static func move(_ state: inout State, to instant: MonotonicTime) {
        guard instant > state.monotonic else { return }
        state.wall = state.wall.advanced(by: state.monotonic.duration(to: instant))
        state.monotonic = instant
    }
}
