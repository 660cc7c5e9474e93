import HTTPCaching
import HTTPTypes

/// What the transfers and readers of one key and one set of selecting fields share.
///
/// Transfers write to the disk entry and report here; readers read the entry and wait here. A fill
/// lives as long as a transfer or a reader holds it.
final class SharedTransfers: Sendable {
    /// The head and the entry of one representation (invariant 3).
    struct Generation: Sendable {
        let head: StoredResponse
        let entry: DiskEntry
        /// The head as it came, where not all of it may be stored and it goes to another client.
        var received: StoredResponse?
    }

    /// A 304: the head that it was about, and what it is now.
    struct Confirmation: Sendable {
        let asked: StoredResponse
        let freshened: StoredResponse
    }

    /// What a transfer's response head turned out to mean.
    enum Outcome: Sendable {
        /// Bytes go into this entry, which is another one than before if the origin changed.
        case storing(Generation)
        /// Bytes are not stored and go to the one reader that claims the channel.
        case passing(StoredResponse, PassThroughChannel, NotStored)
        /// 304: what is stored is still the representation; nil if the answer is about something
        /// that is not stored.
        case notModified(Confirmation?)
        /// A final status without a body that was wanted.
        case unsuccessful(StoredResponse, isStored: Bool)
    }

    /// What follows after the disk has refused in the middle of a generation.
    struct Bypass: Sendable {
        let channel: PassThroughChannel
        let reason: NotStored
    }

    private struct State {
        var generation: Generation?
        /// Which group the transfers that write into an entry belong to, by generation.
        var writers: [UInt64: TransferGroup] = [:]
        /// Where bodies end whose entry could not record it, and the ends that it did not take.
        var ends: [UInt64: (length: Int64, tail: BodyWriter?)] = [:]
        /// Generations of which the origin has said otherwise than their validators do.
        var contradicted: Set<UInt64> = []
        var isMakingEntry = false
        /// Transfers that wait until none is making an entry.
        var waitingToMakeEntry = 0
        var roll = ReaderRegistry()
        /// Transfers that wait until one of their readers reads on.
        var pausedTransfers = 0
    }

    /// Bumped whenever bytes arrive, a head arrives, or a transfer ends.
    let signal = ProgressSignal()
    let group: TransferGroup
    private let state = Guarded(State())

    private let onRelease: @Sendable () -> Void

    init(group: TransferGroup, onRelease: @escaping @Sendable () -> Void) {
        self.group = group
        self.onRelease = onRelease
    }

    deinit {
        onRelease()
    }

    /// The newest generation that a transfer of this fill has met.
    var generation: Generation? {
        state.withLock { $0.generation }
    }

    /// The group to join for bytes of `entry`: that of the transfer writing it, if there is one.
    func joinableGroup(for entry: DiskEntry) -> TransferGroup {
        state.withLock { $0.writers[entry.generation] } ?? group
    }

    /// A transfer's head has arrived, and this is what it means.
    ///
    /// What waits for it learns it with the next bump of ``signal``, which is the caller's.
    ///
    /// - Parameters:
    ///   - answer: what it means.
    ///   - report: the transfer's.
    ///   - group: what others may join for the same bytes; nil for a transfer that is for one
    ///     reader.
    func didReceiveHead(_ answer: Outcome, report: TransferReport, group: TransferGroup?) {
        report.didAnswer(answer)
        guard case .storing(let generation) = answer else { return }
        let before = state.withLock { state in
            defer { state.generation = generation }
            if let group { state.writers[generation.entry.generation] = group }
            return state.generation
        }
        // It may own the last share in an entry, so it is let go of outside the lock.
        withExtendedLifetime(before) {}
    }

    // MARK: Contradictions

    /// The origin has denied what is stored, so that its validator, should it come again, proves
    /// nothing about these bytes (row 8).
    func didContradict(_ entry: DiskEntry) {
        state.withLock { _ = $0.contradicted.insert(entry.generation) }
    }

    /// Whether nothing that comes from now on may be joined to what the entry holds.
    func isContradicted(_ entry: DiskEntry) -> Bool {
        state.withLock { $0.contradicted.contains(entry.generation) }
    }

    // MARK: Making entries

    /// Waits until no other transfer of this fill is making an entry.
    ///
    /// So that of two transfers that meet one representation at once, the second finds the entry
    /// that the first has made, and does not replace it.
    ///
    /// - Throws: `.cancelled`; the turn is not taken then.
    func takeTurnToMakeEntry() async throws(CacheError) {
        while true {
            let seen = signal.version
            let isMine = state.withLock { state in
                guard state.isMakingEntry else {
                    state.isMakingEntry = true
                    return true
                }
                state.waitingToMakeEntry += 1
                return false
            }
            if isMine { return }
            defer { state.withLock { $0.waitingToMakeEntry -= 1 } }
            guard !Task.isCancelled else { throw .leftTransfer }
            await signal.wait(after: seen)
        }
    }

    func endTurnToMakeEntry() {
        let isAwaited = state.withLock { state in
            state.isMakingEntry = false
            return state.waitingToMakeEntry > 0
        }
        if isAwaited { signal.bump() }
    }

    // MARK: Ends that the disk did not take

    /// The length of a body, as far as the entry or a transfer knows it.
    func completeLength(of entry: DiskEntry) -> Int64? {
        entry.completeLength ?? state.withLock { $0.ends[entry.generation]?.length }
    }

    /// The body has come to its end, but the disk refused to record that (invariant 9).
    ///
    /// - Parameters:
    ///   - length: where it ends.
    ///   - entry: whose body.
    ///   - tail: what the disk did not take; readable while the fill lives.
    func didReachEnd(_ length: Int64, of entry: DiskEntry, tail: BodyWriter?) {
        state.withLock { $0.ends[entry.generation] = (length, tail) }
    }

    // MARK: Readers

    func enter(at position: Int64, transfer: TransferID?, now: MonotonicTime) -> UInt64 {
        state.withLock { $0.roll.enter(at: position, transfer: transfer, now: now) }
    }

    func didJoin(_ transfer: TransferID?, reader: UInt64) {
        // Only for a change, or a reader that waits for the signal would wake itself.
        tellPaused { $0.didJoin(transfer, reader: reader) }
    }

    /// A reader wants bytes; a transfer that has paused for it goes on.
    func didAsk(_ reader: UInt64, at position: Int64, now: MonotonicTime) {
        tellPaused { roll in
            roll.didAsk(reader, at: position, now: now)
            return true
        }
    }

    /// Has transfers that have paused look again, if there are any and `change` has changed
    /// something.
    private func tellPaused(_ change: (inout ReaderRegistry) -> Bool) {
        let isAwaited = state.withLock { change(&$0.roll) && $0.pausedTransfers > 0 }
        if isAwaited { signal.bump() }
    }

    func didAnswer(_ reader: UInt64, now: MonotonicTime) {
        state.withLock { $0.roll.didAnswer(reader, now: now) }
    }

    func leave(_ reader: UInt64) {
        tellPaused { roll in
            roll.leave(reader)
            return true
        }
    }

    /// Whether nobody reads any more what a transfer brings.
    func haveReadersStopped(_ transfer: TransferID, at offset: Int64, now: MonotonicTime) -> Bool {
        state.withLock { $0.roll.haveStopped(transfer, at: offset, now: now) }
    }

    /// Waits until somebody reads on, or joins, or leaves the transfer; or the task is cancelled.
    func waitForReader(of transfer: TransferID, at offset: Int64, time: any TimeSource) async {
        state.withLock { $0.pausedTransfers += 1 }
        defer { state.withLock { $0.pausedTransfers -= 1 } }
        while !Task.isCancelled {
            let seen = signal.version
            guard haveReadersStopped(transfer, at: offset, now: time.monotonicTime()) else {
                return
            }
            await signal.wait(after: seen)
        }
    }
}
