/// What a transfer's work tells the queue, and how it gives its slot back.
///
/// May be used from any thread, except that ``stall()`` and ``unstall()`` belong to the work alone,
/// which calls them one after the other. Calls after the work has returned are ignored.
package final class TransferContext: Sendable {
    private enum Slot {
        case occupied
        case none
        /// Somebody waits for a slot.
        case awaited(CheckedContinuation<Bool, Never>)
    }

    private struct State {
        var task: Task<Void, Never>?
        var isCancelled = false
        var slot = Slot.occupied

        /// Whether the work may go on as it is.
        var isStored: Bool {
            if case .occupied = slot { !isCancelled } else { false }
        }
    }

    package let id: TransferID
    let report = TransferReport()
    private let queue: RequestQueue
    private let state = Guarded(State())

    init(id: TransferID, queue: RequestQueue) {
        self.id = id
        self.queue = queue
    }

    /// Whether the transfer has lost its last subscriber or was cancelled; so is its task.
    package var isCancelled: Bool {
        state.withLock { $0.isCancelled }
    }

    /// The highest priority among the subscribers at present.
    package var priority: RequestPriority { queue.priority(of: id) }

    /// Whether the transfer has no subscriber, which would be told of its end.
    var isAbandoned: Bool { queue.isAbandoned(id) }

    /// Everything from the coverage's start up to `position` can be read by now.
    package func didAdvance(to position: Int64) {
        queue.didAdvance(id, to: position)
    }

    /// Where the transfer ends, since what it brings is read no longer; nil while it is.
    package var lingeringEnd: Int64? { queue.lingeringEnd(of: id) }

    /// The transfer begins anew with the byte at `offset`: nothing that it has brought counts any
    /// more.
    package func restart(at offset: Int64) {
        queue.restart(id, at: offset)
    }

    /// The transfer will bring all before `end`, so that who wants it joins it.
    package func extendCoverage(to end: Int64) {
        queue.extendCoverage(of: id, to: end)
    }

    /// The transfer will bring nothing at or after `end`, so nobody who wants that joins it.
    ///
    /// With the present position, or 0, nobody joins at all: for work that knows that it is about
    /// to end or that what it brings is not what was expected.
    package func shrinkCoverage(to end: Int64) {
        queue.shrinkCoverage(of: id, to: end)
    }

    /// Gives the slot back because nobody reads; the work may keep its connection open.
    package func stall() {
        let stalls = state.withLock { state in
            guard case .occupied = state.slot else { return false }
            state.slot = .none
            return true
        }
        if stalls { queue.didStall(id) }
    }

    /// Whether the work may go on as it is: the usual case, at each chunk.
    package var hasSlot: Bool { state.withLock { $0.isStored } }

    /// Waits until the transfer has a slot again; at once if it has one.
    ///
    /// - Throws: ``CacheError/Code/cancelled`` if the transfer was cancelled meanwhile; it has no
    ///   slot then, and the work should return.
    package func unstall() async throws(CacheError) {
        if hasSlot { return }
        let isGranted = await withCheckedContinuation { askForSlot($0) }
        guard isGranted else { throw CacheError(.cancelled, "the download was cancelled") }
    }

    private func askForSlot(_ continuation: CheckedContinuation<Bool, Never>) {
        enum Decision {
            case ask
            case resume(Bool)
        }
        let decision: Decision = state.withLock { state in
            if state.isCancelled { return .resume(false) }
            guard case .none = state.slot else { return .resume(true) }
            state.slot = .awaited(continuation)
            return .ask
        }
        switch decision {
        case .ask: queue.didUnstall(id)
        case .resume(let isGranted): continuation.resume(returning: isGranted)
        }
    }

    /// The queue takes the slot for what plays: the work waits for it in ``unstall()``, before the
    /// next bytes are taken in.
    ///
    /// Where it comes late, and the slot was given back meanwhile, the work asks once for what it
    /// has.
    func pause() {
        state.withLock { state in
            guard case .occupied = state.slot else { return }
            state.slot = .none
        }
    }

    /// The queue gives the slot back.
    func grant() {
        takeAwaiting(slot: .occupied)?.resume(returning: true)
    }

    /// The queue cancels: latched, so that it also holds for a task that does not exist yet.
    func cancel() {
        let task = state.withLock { state in
            state.isCancelled = true
            return state.task
        }
        task?.cancel()
        takeAwaiting(slot: .none)?.resume(returning: false)
    }

    /// The task that runs the work; cancelled at once if the transfer has been.
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
