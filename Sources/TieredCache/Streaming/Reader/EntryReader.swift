import FoundationEssentials
import HTTPCaching

/// Reads an entry, and has fetched what it lacks; stays with one generation (invariant 3).
///
/// What is stored is delivered at once. At a gap the reader joins the transfer that will bring the
/// byte, or makes one; if the origin has another representation by then, it fails rather than join
/// the two. A reader without a plan is read through, as `response.body` is: one transfer brings all
/// that is wanted. One with a plan is for consumers that go anywhere and leave: pieces are asked
/// for where the consumer is, and a little ahead. It may be read from several tasks at once, though
/// one is what it is made for.
final class EntryReader: BodySource, BodyReader {
    /// A share in a transfer, and the bytes for which it was asked.
    struct Share: Sendable {
        let window: Int
        let range: Range<Int64>
        let transfer: Subscription
    }

    struct State: Sendable {
        /// Where the consumer is that reads in order.
        var position: Int64
        /// Where it ends; nil while that is not known.
        var end: Int64?
        /// Decides what is asked for; nil for a reader that is read through.
        var planner: ReadAheadPlanner?
        /// Without a planner one at most.
        var shares: [Share] = []
        /// The rest of a gap that the disk did not take.
        var passing: PassThroughReader?
        /// Where the body turned out to end though the disk could not record it.
        var foundEnd: Int64?
        var storageError: CacheError?
        /// What was stored when the reader was opened and is stored ever since: those bytes count
        /// as the cache's.
        var storedAtStart: ByteRangeSet
        var counts = ByteCounts()
    }

    let entry: DiskEntry
    let storage: Storage
    let fetcher: GapFetcher?
    let state: Guarded<State>
    /// Whether there is a planner.
    let isPlanned: Bool
    /// This reader's number on the fill's roll.
    let number: UInt64?
    /// How long a consumer that reads in order waits for a byte, trying again after failures that
    /// may pass; nil for one that fails with the transfer.
    private let budget: Duration?
    /// Where that consumer will stop, if it has said so.
    private let expectedEnd: Int64?
    /// Whether the origin may be asked anew for what turns out to be missing, though not joined to
    /// it.
    private let mayStartAgain: Bool
    /// Whether a complete pinned body had the entry's name when this was opened.
    let followsPinned: Bool

    /// A reader that is read through.
    convenience init(_ opening: EntryOpening, _ wanted: WantedRange) {
        let share = opening.transfer.map { Share(window: 0, range: Self.all, transfer: $0) }
        self.init(opening, wanted, share, planner: nil, at: wanted.start, scope: nil)
    }

    /// A reader that plans.
    ///
    /// - Parameters:
    ///   - opening: what is read.
    ///   - spec: the bytes that its first request is for.
    ///   - wanted: the bytes that it may come to.
    ///   - scope: how they are read.
    convenience init(
        _ opening: EntryOpening,
        from spec: ByteRangeSpec?,
        _ wanted: WantedRange,
        _ scope: ReaderScope
    ) {
        let first = if case .bounded(let range) = spec { range } else { Self.all }
        var planner = ReadAheadPlanner(options: scope.options.planner)
        let window = planner.begin(first, now: opening.storage.time.monotonicTime())
        let share = opening.transfer.map { Share(window: window, range: first, transfer: $0) }
        self.init(opening, wanted, share, planner: planner, at: first.lowerBound, scope: scope)
    }

    private init(
        _ opening: EntryOpening,
        _ wanted: WantedRange,
        _ share: Share?,
        planner: ReadAheadPlanner?,
        at position: Int64,
        scope: ReaderScope?
    ) {
        entry = opening.entry
        storage = opening.storage
        fetcher = opening.fetcher
        mayStartAgain = opening.mayStartAgain
        followsPinned = entry.isSuccessor
        isPlanned = planner != nil
        budget = scope?.options.deadline
        expectedEnd = if case .bounded(let range) = scope?.range { range.upperBound } else { nil }
        var state = State(
            position: wanted.start,
            end: wanted.end,
            planner: planner,
            storedAtStart: opening.storedBefore ?? entry.storedRanges
        )
        if let share { state.shares = [share] }
        self.state = Guarded(state)
        number = fetcher?.shared.enter(
            at: position,
            transfer: share?.transfer.transfer,
            now: storage.time.monotonicTime()
        )
    }

    static let all = 0..<Int64.max

    deinit {
        guard let fetcher else { return }
        if let number { fetcher.shared.leave(number) }
        guard isPlanned else { return }
        let shares = state.withLock { $0.shares }
        Lingering.begin(shares.map(\.transfer), of: entry, fetcher.shared, storage.time)
    }

    // MARK: What is known

    var counts: ByteCounts { state.withLock { $0.counts } }
    var storageError: CacheError? { state.withLock { $0.storageError } }
    var isSuperseded: Bool { entry.isSuperseded }
    var generation: UInt64? { entry.generation }
    var storageKey: CacheKey? { entry.key }
    var fetching: EntryFetching? { fetcher.map { EntryFetching(entry: entry, fetcher: $0) } }

    func open() -> ReaderBytes { .anywhere(self) }

    var length: Int64? {
        fetcher?.shared.completeLength(of: entry) ?? entry.completeLength
            ?? state.withLock { $0.foundEnd }
    }

    var isSeekable: Bool { !isSequential || holdsAll }

    /// Whether every byte can be read, the end included that a transfer has not sealed yet.
    private var holdsAll: Bool {
        guard let length = entry.completeLength else { return false }
        return length == 0 || entry.storedRange(at: 0).map { $0.upperBound >= length } ?? false
    }

    /// Whether the origin sends the body only as a whole, so that its bytes are waited for.
    var isSequential: Bool { fetcher?.isSequential(entry) ?? true }

    var now: MonotonicTime { storage.time.monotonicTime() }

    // MARK: Reading in order

    func next(atMost count: Int) async throws(CacheError) -> Data? {
        while true {
            let (position, limit) = bounds
            guard position < limit else {
                if !isPlanned { try await end(position, limit) }
                return nil
            }
            let buffer = ReadBuffer(capacity: Int(min(Int64(count), limit - position)))
            let read = Read(
                offset: position,
                destination: ReadDestination(buffer),
                expectedEnd: expectedEnd
            )
            let got = try await self.read(read, until: budget.map { now.advanced(by: $0) })
            // The end may have been found meanwhile.
            guard got > 0 else { continue }
            state.withLock { $0.position = position + Int64(got) }
            return buffer.data(count: got)
        }
    }

    func lease(_ count: ClosedRange<Int64>) -> LeasedBytes? {
        let (position, limit) = bounds
        let wanted = min(count.upperBound, limit - position)
        guard wanted >= count.lowerBound, let leased = entry.lease(position..<position + wanted),
            leased.count >= count.lowerBound
        else { return nil }
        noteRead(at: leased.range.upperBound)
        didRead(leased.range, expectedEnd: expectedEnd)
        state.withLock { $0.position = leased.range.upperBound }
        return leased
    }

    /// The next byte, and where the body ends as far as that is known by now.
    var bounds: (position: Int64, limit: Int64) {
        let (position, end) = state.withLock { ($0.position, $0.end) }
        return (position, min(end ?? .max, length ?? .max))
    }

    // MARK: Reading anywhere

    func readAtOnce(_ read: Read) -> Int? {
        if let length, read.offset >= length { return 0 }
        guard entry.storedRange(at: read.offset) != nil else { return nil }
        let count = entry.read(at: read.offset, into: read.destination.buffer)
        guard count > 0 else { return nil }
        let range = read.offset..<read.offset + Int64(count)
        noteRead(at: range.upperBound)
        didRead(range, expectedEnd: read.expectedEnd, read.control)
        return count
    }

    func read(_ read: Read, until deadline: MonotonicTime?) async throws(CacheError) -> Int {
        if let number { fetcher?.shared.didAsk(number, at: read.offset, now: now) }
        defer { if let number { fetcher?.shared.didAnswer(number, now: now) } }
        var budget = ReadBudget(deadline: deadline, storage.time, read.control)
        let mayBeStopped = isPlanned || read.control != nil
        while true {
            if mayBeStopped { try budget.checkStop() }
            // In this order: what happens after the look at signal and transfer is seen next time.
            let seen = fetcher?.shared.signal.version
            let share = share(at: read.offset)
            let outcome = share?.transfer.outcome
            if let count = await readStored(read) { return count }
            guard let fetcher, let seen else { throw missing(read.offset) }
            // What is not stored any more, being damaged or given up, comes from the origin.
            state.withLock { $0.storedAtStart.remove(BlockTable.extent(around: read.offset)) }
            if let taken = try await passed(read, budget) {
                guard let count = taken else { continue }
                return count
            }
            do throws(CacheError) {
                try await wait(for: read, fetcher, share, outcome, seen: seen, &budget)
            } catch {
                try await budget.retry(after: error)
            }
        }
    }

    /// The transfer that is to bring a byte.
    private func share(at offset: Int64) -> Share? {
        let shares = state.withLock { $0.shares }
        return shares.first { $0.range.contains(offset) || isSequential }
    }

    /// Bytes that are stored, 0 at the end; nil if the byte is missing.
    private func readStored(_ read: Read) async -> Int? {
        if let length, read.offset >= length { return 0 }
        guard entry.storedRange(at: read.offset) != nil else { return nil }
        let destination = read.destination
        var count = 0
        if case .ready(let ready) = entry.readWithoutBlocking(
            at: read.offset,
            into: destination.buffer
        ) {
            count = ready
        }
        if count == 0 {
            // A disk to wait for; this form also finds damaged blocks.
            let entry = entry
            count = await storage.io.run { entry.read(at: read.offset, into: destination.buffer) }
        }
        guard count > 0 else { return nil }
        let range = read.offset..<read.offset + Int64(count)
        didRead(range, expectedEnd: read.expectedEnd, read.control)
        return count
    }

    /// A reader that is not heard of would count as one that has stopped.
    private func noteRead(at offset: Int64) {
        guard let number else { return }
        fetcher?.shared.didAsk(number, at: offset, now: now)
        fetcher?.shared.didAnswer(number, now: now)
    }

    private func didRead(
        _ range: Range<Int64>,
        expectedEnd end: Int64?,
        _ control: ReadControl? = nil
    ) {
        let stored = state.withLock { state in
            let missing = state.storedAtStart.gaps(in: range).count
            state.counts.add(fromOrigin: missing)
            state.counts.add(fromCache: Int64(range.count) - missing)
            return Int64(range.count) - missing
        }
        // What is read through was counted when its response was made.
        guard isPlanned else { return }
        storage.recorder.didRead(stored, from: .disk)
        guard let fetcher, !entry.isComplete, control?.isOpen ?? true else { return }
        readAhead(of: range, expectedEnd: end, fetcher)
    }

    private func missing(_ offset: Int64) -> CacheError {
        CacheError(
            mayStartAgain ? .representationChanged : .notCached,
            "byte \(offset) is not stored any more"
                + (mayStartAgain ? "; fetch it again" : " and may not be fetched")
        )
    }
}
