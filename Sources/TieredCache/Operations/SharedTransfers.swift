import FoundationEssentials
import HTTPCaching
import HTTPTypes

/// The state that the transfers and readers of one key and one set of selecting fields share.
///
/// Transfers write to the disk entry and report here; readers read the entry and wait here. Lives
/// as long as a transfer or a reader refers to it.
final class SharedTransfers: Sendable {
    /// The head and the entry of one representation (invariant 3).
    struct Generation: Sendable {
        let head: StoredResponse
        let entry: DiskEntry
        /// The head as received, if it goes to the client of a relay and not all of it may be
        /// stored.
        var received: StoredResponse?
        /// All of the body, for those who wait for the head, if it has come with it.
        var body: Data?
    }

    /// A 304: the stored head that it confirms, and the freshened one.
    struct Confirmation: Sendable {
        let asked: StoredResponse
        let freshened: StoredResponse
    }

    /// The consequence of a transfer's response head.
    enum Outcome: Sendable {
        /// Bytes go into this entry, a new one if the representation has changed.
        case storing(Generation)
        /// Bytes are not stored.
        case passing(StoredResponse, Bypass)
        /// A 304: the stored representation is current; nil if it confirms a response that is not
        /// stored.
        case notModified(Confirmation?)
        /// A final status without a wanted body.
        case unsuccessful(StoredResponse, isStored: Bool)

        /// The head of the response; nil for a 304.
        var head: StoredResponse? {
            switch self {
            case .storing(let generation): generation.head
            case .passing(let head, _), .unsuccessful(let head, _): head
            case .notModified: nil
            }
        }
    }

    /// The delivery of bytes that must not be stored, or of those that follow where the disk has
    /// refused some.
    struct Bypass: Sendable {
        enum Bytes: Sendable {
            /// To the one reader that claims the window.
            case window(WindowBody)
            /// All of a body that has come with its head.
            case whole(Data)
        }

        let bytes: Bytes
        let reason: NotStored

        var completeLength: Int64? {
            switch bytes {
            case .window(let window): window.completeLength
            case .whole(let body): Int64(body.count)
            }
        }
    }

    struct State {
        /// Who wants which bytes, and what the transfers will bring.
        var resource = ResourceState()
        /// The transfers that ``resource`` knows.
        var contexts: [TransferID: TransferContext] = [:]
        var generation: Generation?
        /// The group of the transfers that write into an entry, by generation.
        var writers: [UInt64: TransferGroup] = [:]
        /// The ends of bodies that the disk could not record, and the bytes that it did not take.
        var ends: [UInt64: (length: Int64, tail: BodyWriter?)] = [:]
        /// Generations that the origin has contradicted although their validators matched.
        var contradicted: Set<UInt64> = []
        var isMakingEntry = false
        /// The number of transfers that wait until no entry is being created.
        var waitingToMakeEntry = 0
        /// The reports of the operations that have readers, by reader.
        var reports: [ReaderID: RequestReports] = [:]
    }

    /// Bumped whenever bytes arrive, a head arrives, or a transfer ends.
    let signal = ProgressSignal()
    let group: TransferGroup
    let state = Guarded(State())

    private let onRelease: @Sendable () -> Void

    init(group: TransferGroup, onRelease: @escaping @Sendable () -> Void) {
        self.group = group
        self.onRelease = onRelease
    }

    deinit {
        onRelease()
    }

    /// The newest generation of these transfers.
    var generation: Generation? {
        state.withLock { $0.generation }
    }

    /// The group to join for bytes of `entry`: that of the transfer that writes it, if any.
    func joinableGroup(for entry: DiskEntry, head: StoredResponse) -> TransferGroup {
        state.withLock { $0.writers[entry.generation] } ?? group(for: head.selectingFields)
    }

    /// The group of the requests that get a response with these selecting fields: a part of
    /// ``group`` if it varies by fields in which the requests of that may differ.
    func group(for selecting: [SelectingField]) -> TransferGroup {
        let values =
            selecting
            .filter { CacheRequest.negotiatingFields.contains($0.name) }
            .map { " \($0.name)=\($0.digest ?? "")" }
        guard !values.isEmpty else { return group }
        return TransferGroup(key: group.key, selector: group.selector + values.joined())
    }

    /// Records the consequence of a transfer's response head.
    ///
    /// Waiting requests see it after the next bump of ``signal``, which the caller makes.
    ///
    /// - Parameters:
    ///   - answer: the consequence.
    ///   - context: the transfer.
    ///   - group: the group that other requests may join for the same bytes; nil for a transfer
    ///     with one reader.
    func didReceiveHead(_ answer: Outcome, of context: TransferContext, group: TransferGroup?) {
        context.didReceive(answer)
        guard case .storing(var generation) = answer else { return }
        // Who comes later finds it in the entry.
        generation.body = nil
        let before = state.withLock { state in
            defer { state.generation = generation }
            if let group { state.writers[generation.entry.generation] = group }
            return state.generation
        }
        // It may own the last reference to an entry, so it is released outside the lock.
        withExtendedLifetime(before) {}
    }

    // MARK: Contradictions

    /// Notes that the origin has contradicted a stored representation, so that its validator proves
    /// nothing about these bytes from now on (row 8).
    func didContradict(_ entry: DiskEntry) {
        state.withLock { _ = $0.contradicted.insert(entry.generation) }
    }

    /// Whether no new bytes may be combined with those of the entry.
    func isContradicted(_ entry: DiskEntry) -> Bool {
        state.withLock { $0.contradicted.contains(entry.generation) }
    }

    // MARK: Creating entries

    /// Waits until no other of these transfers is creating an entry.
    ///
    /// If two transfers receive one representation at once, the second then finds the entry of the
    /// first and does not replace it. End with ``releaseEntryCreation()``.
    ///
    /// - Throws: `.cancelled`; nothing is acquired then.
    func acquireEntryCreation() async throws(CacheError) {
        while true {
            let seen = signal.version
            let isAcquired = state.withLock { state in
                guard state.isMakingEntry else {
                    state.isMakingEntry = true
                    return true
                }
                state.waitingToMakeEntry += 1
                return false
            }
            if isAcquired { return }
            defer { state.withLock { $0.waitingToMakeEntry -= 1 } }
            guard !Task.isCancelled else { throw .leftTransfer }
            await signal.wait(after: seen)
        }
    }

    func releaseEntryCreation() {
        let isAwaited = state.withLock { state in
            state.isMakingEntry = false
            return state.waitingToMakeEntry > 0
        }
        if isAwaited { signal.bump() }
    }

    // MARK: Ends that the disk could not record

    /// The length of a body, as far as the entry or a transfer knows it.
    func completeLength(of entry: DiskEntry) -> Int64? {
        entry.completeLength ?? state.withLock { $0.ends[entry.generation]?.length }
    }

    /// Notes the end of a body that the disk refused to record (invariant 9).
    ///
    /// - Parameters:
    ///   - length: the length of the body.
    ///   - entry: the entry of the body.
    ///   - tail: the bytes that the disk did not take; readable as long as this object lives.
    func didReachEnd(_ length: Int64, of entry: DiskEntry, tail: BodyWriter?) {
        state.withLock { $0.ends[entry.generation] = (length, tail) }
    }
}
