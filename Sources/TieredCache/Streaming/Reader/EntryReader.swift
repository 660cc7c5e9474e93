import FoundationEssentials
import HTTPCaching

/// Reads an entry, and fetches its missing bytes; stays with one generation (invariant 3).
///
/// Stored bytes are delivered at once. At a gap the reader joins the transfer that will bring the
/// byte, or starts one; if the origin has another representation by then, the read fails rather
/// than combine the two. A reader without a planner is sequential, like `response.body`: one
/// transfer brings all wanted bytes. A reader with a planner serves consumers that seek and leave:
/// it requests pieces at the consumer's position, and a little ahead. Several tasks may read at
/// once, though it is optimized for one.
final class EntryReader: BodySource, BodyReader {
    /// A subscription to a transfer, and the bytes that it was asked for.
    struct Share: Sendable {
        let window: Int
        /// Those that are asked for by now.
        var range: Range<Int64>
        let transfer: Subscription
    }

    struct State: Sendable {
        /// The position of sequential reads.
        var position: Int64
        /// The end of sequential reads; nil while unknown.
        var end: Int64?
        /// Decides which bytes are requested; nil for a sequential reader.
        var planner: ReadAheadPlanner?
        /// The transfers that this reader waits for; without a planner one at most.
        var shares: [Share] = []
        /// The rest of a gap that the disk did not take.
        var passing: WindowReader?
        /// The end of the body if the disk could not record it.
        var foundEnd: Int64?
        var storageError: CacheError?
        /// The ranges stored when the reader was opened, and stored ever since: their bytes count
        /// as the cache's.
        var storedAtStart: ByteRangeSet
        var counts = ByteCounts()
        /// Whether sequential reads have reached the end or failed.
        var hasEnded = false
    }

    let entry: DiskEntry
    let storage: Storage
    let fetcher: GapFetcher?
    /// Decides whether the body is what it has to be; nil if nothing is promised.
    let judge: BodyJudge?
    /// Whether the reader compares what its request expects: sequential reads reach all bytes, or the
    /// body was not all stored when it was opened.
    let comparesExpected: Bool
    /// Compares the bytes with what the body has to be; nil if nothing is to be decided.
    let digests: ReaderDigests?
    let state: Guarded<State>
    /// Whether the reader has a planner.
    let isPlanned: Bool
    /// This reader in the record of its resource; nil if it may not fetch.
    let number: ReaderID?
    /// The time that a sequential read of a byte may take, with retries after transient failures;
    /// nil for a reader that fails with its transfer.
    private let budget: Duration?
    /// The end of the bytes that sequential reads will certainly read; nil if unknown.
    private let expectedEnd: Int64?
    /// Whether a complete pinned body had the entry's name when the reader was opened.
    let followsPinned: Bool

    /// A sequential reader.
    convenience init(_ opening: EntryOpening, wanted: WantedRange) {
        let share = opening.transfer.map { Share(window: 0, range: Self.all, transfer: $0) }
        self.init(opening, wanted: wanted, share: share, planner: nil, at: wanted.start, scope: nil)
    }

    /// A reader with a planner.
    ///
    /// - Parameters:
    ///   - opening: the entry to read.
    ///   - spec: the bytes of its first request.
    ///   - wanted: the bytes that it may reach.
    ///   - scope: the options of its reads.
    convenience init(
        _ opening: EntryOpening,
        from spec: ByteRangeSpec?,
        wanted: WantedRange,
        scope: ReaderScope
    ) {
        let first = if case .bounded(let range) = spec { range } else { Self.all }
        var planner = ReadAheadPlanner(options: scope.options.planner)
        let window = planner.begin(
            first,
            storedBefore: Self.stored(before: first.lowerBound, in: opening.entry),
            now: opening.storage.time.monotonicTime()
        )
        let share = opening.transfer.map { Share(window: window, range: first, transfer: $0) }
        self.init(
            opening,
            wanted: wanted,
            share: share,
            planner: planner,
            at: first.lowerBound,
            scope: scope
        )
    }

    private init(
        _ opening: EntryOpening,
        wanted: WantedRange,
        share: Share?,
        planner: ReadAheadPlanner?,
        at position: Int64,
        scope: ReaderScope?
    ) {
        entry = opening.entry
        storage = opening.storage
        fetcher = opening.fetcher
        judge = opening.judge
        let isAll = wanted.isAll(of: entry.completeLength)
        comparesExpected = isAll || !entry.isComplete
        followsPinned = entry.isSuccessor
        isPlanned = planner != nil
        budget = scope?.options.deadline
        expectedEnd = if case .bounded(let range) = scope?.range { range.upperBound } else { nil }
        let stored = opening.storedBefore ?? entry.storedRanges
        var state = State(
            position: wanted.start,
            end: wanted.end,
            planner: planner,
            storedAtStart: stored
        )
        let hasGaps = wanted.end.map { stored.gaps(in: 0..<$0).count > 0 } ?? true
        digests = isAll ? judge?.digests(of: entry, hasGaps: hasGaps) : nil
        if let share { state.shares = [share] }
        self.state = Guarded(state)
        judge?.enter(entry)
        number = fetcher?.shared.enter(
            at: position,
            of: share?.transfer.transfer,
            reports: fetcher?.request.reports,
            now: storage.time.monotonicTime()
        )
    }

    static let all = 0..<Int64.max

    deinit {
        guard let fetcher else { return }
        if let number { fetcher.shared.leave(number) }
        fetcher.request.reports?.endIfDone()
        guard isPlanned else { return }
        let transfers = state.withLock { $0.shares.map(\.transfer) }
        fetcher.shared.linger(transfers, by: storage.time)
    }

    // MARK: Properties

    var counts: ByteCounts { state.withLock { $0.counts } }
    var storageError: CacheError? { state.withLock { $0.storageError } }
    var storedRanges: [Range<Int64>] { entry.storedRanges.ranges }
    var isSuperseded: Bool { entry.isSuperseded }
    var generation: UInt64? { entry.generation }
    var storageKey: CacheKey? { entry.key }
    var fetching: EntryFetching? { fetcher.map { EntryFetching(entry: entry, fetcher: $0) } }

    func open() -> ReaderBytes { .seekable(self) }

    var length: Int64? {
        fetcher?.shared.completeLength(of: entry) ?? entry.completeLength
            ?? state.withLock { $0.foundEnd }
    }

    var isSeekable: Bool { !isSequential || holdsAll }

    /// Whether every byte can be read, including those that a transfer has not sealed yet.
    private var holdsAll: Bool {
        guard let length = entry.completeLength else { return false }
        return length == 0 || entry.storedRange(at: 0).map { $0.upperBound >= length } ?? false
    }

    /// Whether the origin sends only the whole body, so that a reader waits for distant bytes.
    var isSequential: Bool { fetcher?.isSequential(entry) ?? true }

    var now: MonotonicTime { storage.time.monotonicTime() }

    // MARK: Sequential reads

    func next(atMost count: Int) async throws(CacheError) -> Data? {
        while true {
            let (position, limit) = bounds
            guard position < limit else {
                defer { didEnd() }
                if isPlanned {
                    let end = ReadBudget(
                        deadline: nextDeadline,
                        time: storage.time,
                        control: nil
                    )
                    try await awaitEnd(budget: end)
                } else {
                    try await finish(at: position, limit: limit)
                }
                return nil
            }
            let buffer = ReadBuffer(capacity: Int(min(Int64(count), limit - position)))
            let read = Read(
                offset: position,
                destination: ReadDestination(buffer),
                expectedEnd: expectedEnd
            )
            let got: Int
            do throws(CacheError) {
                got = try await self.read(read, until: nextDeadline)
            } catch {
                didEnd()
                throw error
            }
            // The end may have been found meanwhile.
            guard got > 0 else { continue }
            state.withLock { $0.position = position + Int64(got) }
            return buffer.data(count: got)
        }
    }

    /// When a sequential read that begins now has failed.
    private var nextDeadline: MonotonicTime? { budget.map { now.advanced(by: $0) } }

    func lease(_ count: ClosedRange<Int64>, send: (LeasedBytes) -> Int64?) -> Int64? {
        // Leased bytes are not seen here, so they cannot be compared.
        guard digests == nil else { return nil }
        let (position, limit) = bounds
        let wanted = min(count.upperBound, limit - position)
        guard wanted >= count.lowerBound else { return nil }
        let leased: Int64?? = entry.lease(position..<position + wanted) { leased in
            leased.count >= count.lowerBound ? send(leased) : nil
        }
        guard let sent = leased ?? nil else { return nil }
        let end = position + sent
        if sent > 0 { didRead(position..<end, expectedEnd: expectedEnd) }
        state.withLock { $0.position = end }
        return sent
    }

    /// Whether a sequential read may start a transfer: bytes are missing, and it goes on.
    var mayFetch: Bool {
        guard fetcher != nil, !state.withLock({ $0.hasEnded }) else { return false }
        let (position, limit) = bounds
        guard limit < .max else { return true }
        return position < limit && entry.storedRanges.gaps(in: position..<limit).count > 0
    }

    /// Ends the reports of the operation, unless a transfer of it goes on.
    private func didEnd() {
        guard let reports = fetcher?.request.reports else { return }
        state.withLock { $0.hasEnded = true }
        reports.endIfDone()
    }

    /// The next byte of sequential reads, and the end of the body as far as it is known.
    var bounds: (position: Int64, limit: Int64) {
        let (position, end) = state.withLock { ($0.position, $0.end) }
        return (position, min(end ?? .max, length ?? .max))
    }

    // MARK: Random reads

    func readWithoutWaiting(_ read: Read) -> Int? {
        if let length, read.offset >= length { return mayHaveToDecide ? nil : 0 }
        guard entry.storedRange(at: read.offset) != nil else { return nil }
        let count = entry.read(at: read.offset, into: read.destination.buffer)
        guard count > 0 else { return nil }
        let range = read.offset..<read.offset + Int64(count)
        digests?.take(read.destination.prefix(count), at: read.offset)
        didRead(range, expectedEnd: read.expectedEnd, control: read.control)
        return count
    }

    func read(_ read: Read, until deadline: MonotonicTime?) async throws(CacheError) -> Int {
        var budget = ReadBudget(deadline: deadline, time: storage.time, control: read.control)
        let mayBeStopped = isPlanned || read.control != nil
        while true {
            if mayBeStopped { try budget.checkStop() }
            // In this order: changes after the look at signal and transfer are seen in the next
            // round.
            let seen = fetcher?.shared.signal.version
            let share = share(at: read.offset)
            let outcome = share?.transfer.outcome
            if let count = await readStored(read) {
                // Only the end says that the body is right.
                if count == 0 { try await awaitEnd(budget: budget) }
                return count
            }
            guard let fetcher, let seen else { throw missing(read.offset) }
            // A byte that is no longer stored, being damaged or evicted, comes from the origin.
            state.withLock { $0.storedAtStart.remove(BlockTable.extent(around: read.offset)) }
            if let taken = try await readPassing(read, budget: budget) {
                guard let count = taken else { continue }
                return count
            }
            do throws(CacheError) {
                try await wait(
                    for: read,
                    using: fetcher,
                    share: share,
                    outcome: outcome,
                    seen: seen,
                    budget: &budget
                )
            } catch {
                try await budget.retry(after: error)
            }
        }
    }

    /// The transfer that will bring a byte.
    func share(at offset: Int64) -> Share? {
        let shares = state.withLock { $0.shares }
        let isSequential = isSequential
        return shares.first { share in
            guard share.range.contains(offset) || isSequential else { return false }
            return !isPlanned || !share.transfer.hasPassed(offset)
        }
    }

    /// Reads stored bytes; 0 at the end, nil if the first byte is missing.
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
            // The disk has to be waited for; this call also detects damaged blocks.
            let entry = entry
            count = await storage.io.run { entry.read(at: read.offset, into: destination.buffer) }
        }
        guard count > 0 else { return nil }
        let range = read.offset..<read.offset + Int64(count)
        digests?.take(destination.prefix(count), at: read.offset)
        didRead(range, expectedEnd: read.expectedEnd, control: read.control)
        return count
    }

    /// Tells the transfer of this reader that it goes on: a silent one would count as stopped.
    func noteRead(to offset: Int64, waitingFor transfer: TransferID? = nil) {
        guard let number else { return }
        fetcher?.shared.didRead(number, to: offset, waitingFor: transfer, now: now)
    }

    private func didRead(
        _ range: Range<Int64>,
        expectedEnd end: Int64?,
        control: ReadControl? = nil
    ) {
        let (stored, hasTransfer) = state.withLock { state in
            let missing = state.storedAtStart.gaps(in: range).count
            state.counts.add(fromOrigin: missing)
            state.counts.add(fromCache: Int64(range.count) - missing)
            return (Int64(range.count) - missing, !state.shares.isEmpty)
        }
        if hasTransfer { noteRead(to: range.upperBound) }
        // Sequential reads were counted when the response was made.
        guard isPlanned else { return }
        storage.recorder.didRead(stored, from: .disk)
        guard let fetcher, !entry.isComplete, control?.isOpen ?? true else { return }
        readAhead(of: range, expectedEnd: end, using: fetcher)
    }

    private func missing(_ offset: Int64) -> CacheError {
        CacheError(.notCached, "byte \(offset) is no longer stored and may not be fetched")
    }
}
