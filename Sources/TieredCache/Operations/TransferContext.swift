/// One transfer, for its work, its queue, and its subscribers: its slot, what its response has
/// become, and the way to what ``ResourceState`` knows of it.
///
/// Lives as long as the work and its subscribers do.
/// ``SharedTransfers/signal`` is bumped after a change of ``outcome`` or ``bypass``. May be used
/// from any thread, except that only the work calls ``stall()`` and ``unstall()``, one after the
/// other. Calls after the work has returned are ignored.
package final class TransferContext: Sendable {
    private enum Slot {
        case occupied
        case none
        /// The work waits for a slot.
        case awaited(CheckedContinuation<Bool, Never>)
    }

    private struct State {
        /// What it does once it has a slot; nil from then on.
        var work: RequestQueue.Work?
        var task: Task<Void, Never>?
        var isCancelled = false
        var slot = Slot.occupied
        /// The thread of a caller on which the work has begun; it must not block there.
        var callersThread: UInt64?
        var outcome: SharedTransfers.Outcome?
        var bypass: SharedTransfers.Bypass?

        /// Whether the work may continue without a wait.
        var hasSlot: Bool {
            if case .occupied = slot { !isCancelled } else { false }
        }
    }

    package let id: TransferID
    /// The end of the bytes that it was made for: no other transfer brought them then.
    let end: Int64
    /// The observation of the transfer, which other requests join; nil without an observer.
    let observation: (any TransferObservation)?
    /// What it shares with the others for its resource; knows it until it ends.
    let shared: SharedTransfers
    let queue: RequestQueue
    private let state: Guarded<State>

    init(
        id: TransferID,
        end: Int64,
        of shared: SharedTransfers,
        in queue: RequestQueue,
        observation: (any TransferObservation)?,
        work: @escaping RequestQueue.Work
    ) {
        (self.id, self.end, self.observation) = (id, end, observation)
        (self.shared, self.queue) = (shared, queue)
        state = Guarded(State(work: work))
    }

    // MARK: Its response

    /// The consequence of the transfer's head; nil before it has arrived.
    var outcome: SharedTransfers.Outcome? { state.withLock { $0.outcome } }

    /// The delivery of the transfer's bytes after the disk refused some; nil while it stores.
    var bypass: SharedTransfers.Bypass? { state.withLock { $0.bypass } }

    /// Records a head: the first, or one that replaces it.
    func didReceive(_ outcome: SharedTransfers.Outcome) {
        let before = state.withLock { state in
            defer { (state.outcome, state.bypass) = (outcome, nil) }
            return (state.outcome, state.bypass)
        }
        // They may own entries and windows, so they are released outside the lock.
        withExtendedLifetime(before) {}
    }

    func didBypassDisk(_ bypass: SharedTransfers.Bypass) {
        state.withLock { $0.bypass = bypass }
    }

    // MARK: Its place in the queue

    /// Whether the transfer has lost its last subscriber or was cancelled; its task is, too.
    package var isCancelled: Bool {
        state.withLock { $0.isCancelled }
    }

    /// Whether its work has begun, or never will.
    var hasStarted: Bool { state.withLock { $0.work == nil } }

    /// Takes the work, to run or to drop it.
    ///
    /// - Parameter onCallersThread: whether it begins on this thread, which is not one of the
    ///   queue's.
    /// - Returns: the work; nil if it was taken.
    func takeWork(onCallersThread: Bool = false) -> RequestQueue.Work? {
        state.withLock { state in
            if onCallersThread { state.callersThread = ThreadNumber.current }
            return state.work.take()
        }
    }

    /// Whether it waits for a slot.
    var isWaiting: Bool { queue.isWaiting(id) }

    /// The highest priority of its subscribers.
    package var priority: RequestPriority { queue.priority(of: id) }

    /// The origin has begun to respond.
    func didRespond() { queue.didRespond(id) }

    /// Moves work that is still on its caller's thread to one that may block on the disk.
    ///
    /// Where a transport has its response at hand, the work has not waited and has not left it.
    func leaveCallersThread() async {
        // A task that is resumed before it has quite suspended goes on where it is, so once may not
        // be enough.
        while state.withLock({ $0.callersThread == ThreadNumber.current }) { await Task.yield() }
    }

    /// Changes what its resource knows of it, or looks at it; nil without a subscriber.
    @discardableResult
    package func update<Result: Sendable>(
        _ body: (inout ResourceState.Transfer) -> Result
    ) -> Result? {
        shared.update(id, body)
    }

    /// All bytes from the coverage's start up to `position` can be read now.
    ///
    /// - Returns: whether a subscriber wants more by now, and whether all readers have stopped.
    @discardableResult
    func didAdvance(
        to position: Int64,
        now: MonotonicTime
    ) -> (isWanted: Bool, haveReadersStopped: Bool) {
        shared.didAdvance(id, to: position, now: now)
    }

    /// Whether the transfer has no reader and waits for the next one.
    var isLingering: Bool { update { $0.lingeringEnd != nil } ?? false }

    /// Releases the slot because all readers have stopped; the work may keep its connection open.
    package func stall() {
        let stalls = state.withLock { state in
            guard case .occupied = state.slot else { return false }
            state.slot = .none
            return true
        }
        if stalls { queue.didStall(id) }
    }

    /// Releases the slot because no reader wants more by now, unless too many transfers keep a
    /// connection without a slot.
    package func stallIfRoom() -> Bool {
        guard queue.stallIfRoom(id) else { return false }
        state.withLock { state in
            if case .occupied = state.slot { state.slot = .none }
        }
        return true
    }

    /// Whether the work has its slot and is not cancelled: the usual case, checked at each chunk.
    package var hasSlot: Bool { state.withLock { $0.hasSlot } }

    /// Waits until the transfer has a slot again; at once if it has one.
    ///
    /// - Throws: ``CacheError/Code/cancelled`` if the transfer was cancelled meanwhile; it has no
    ///   slot then, and the work should return.
    package func unstall() async throws(CacheError) {
        if hasSlot { return }
        let isGranted = await withCheckedContinuation { requestSlot($0) }
        guard isGranted else { throw CacheError(.cancelled, "the download was cancelled") }
    }

    private func requestSlot(_ continuation: CheckedContinuation<Bool, Never>) {
        enum Decision {
            case request
            case resume(Bool)
        }
        let decision: Decision = state.withLock { state in
            if state.isCancelled { return .resume(false) }
            guard case .none = state.slot else { return .resume(true) }
            state.slot = .awaited(continuation)
            return .request
        }
        switch decision {
        case .request: queue.didUnstall(id)
        case .resume(let isGranted): continuation.resume(returning: isGranted)
        }
    }

    /// Takes the slot for a playing request: the work waits in ``unstall()`` before its next chunk.
    ///
    /// If the work has released its slot and regained it meanwhile, it needlessly requests it once.
    func pause() {
        state.withLock { state in
            guard case .occupied = state.slot else { return }
            state.slot = .none
        }
    }

    /// Grants the slot again.
    func grant() {
        takeAwaiting(slot: .occupied)?.resume(returning: true)
    }

    /// Cancels the work: latched, so that it also holds for a task that does not exist yet.
    func cancel() {
        let task = state.withLock { state in
            state.isCancelled = true
            return state.task
        }
        task?.cancel()
        takeAwaiting(slot: .none)?.resume(returning: false)
    }

    /// Sets the task that runs the work; cancels it if the transfer is cancelled.
    func attach(_ task: Task<Void, Never>) {
        let isCancelled = state.withLock { state in
            state.task = task
            return state.isCancelled
        }
        if isCancelled { task.cancel() }
    }

    private func takeAwaiting(slot: Slot) -> CheckedContinuation<Bool, Never>? {
        state.withLock { state in
            guard case .awaited(let continuation) = state.slot else { return nil }
            state.slot = slot
            return continuation
        }
    }
}
