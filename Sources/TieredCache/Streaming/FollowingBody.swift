import FoundationEssentials
import HTTPCaching

/// A body that is read from its disk entry, following the flights that fill it.
///
/// What is held is delivered at once; at a gap the body joins the flight that will bring the byte,
/// or makes one. It stays with one generation (invariant 3): if the origin has another by the time
/// a gap is reached, it fails rather than join the two.
final class FollowingBody: BodySource {
    struct State {
        var position: Int64
        var end: Int64?
        var flight: Subscription?
        /// The rest of a gap that the disk did not take.
        var channel: PassThroughBody?
        var storageTrouble: CacheError?
        /// What was held when the body was opened, less what turned out to be damaged: those bytes
        /// count as the cache's.
        var held: ByteRangeSet
        /// Flights in a row that ended well and did not bring the byte.
        var fruitless = 0
    }

    let counts = ByteCounts()
    let entry: DiskEntry
    let storage: Storage
    let filler: Filler?
    let state: Guarded<State>
    /// This reader's number on the fill's roll.
    private let number: UInt64?
    /// Whether the origin may be asked anew for what turns out to be missing, though not joined to it.
    private let mayStartAgain: Bool
    /// Whether a complete pinned body had the entry's name when this was opened.
    private let followsPinned: Bool

    /// Opens a body that delivers the bytes wanted.
    init(_ opening: EntryOpening, _ wanted: WantedRange) {
        mayStartAgain = opening.mayStartAgain
        entry = opening.entry
        followsPinned = entry.isSuccessor
        storage = opening.storage
        filler = opening.filler
        state = Guarded(
            State(
                position: wanted.start,
                end: wanted.end,
                flight: opening.flight,
                held: opening.heldBefore ?? entry.heldRanges
            )
        )
        number = filler?.fill.enter(
            at: wanted.start,
            flight: opening.flight?.flight,
            now: storage.time.monotonicTime()
        )
    }

    deinit {
        if let number { filler?.fill.leave(number) }
    }

    var storageTrouble: CacheError? { state.withLock { $0.storageTrouble } }

    var isSuperseded: Bool { entry.isSuperseded }

    var filling: EntryFilling? { filler.map { EntryFilling(entry: entry, filler: $0) } }
    var generation: UInt64? { entry.generation }
    var storageKey: CacheKey? { entry.key }

    func next(atMost count: Int) async throws(CacheError) -> Data? {
        guard let number, let fill = filler?.fill else { return try await follow(atMost: count) }
        let position = state.withLock { $0.position }
        fill.didAsk(number, at: position, now: storage.time.monotonicTime())
        defer { fill.didAnswer(number, now: storage.time.monotonicTime()) }
        return try await follow(atMost: count)
    }

    func lend(_ count: ClosedRange<Int64>) -> LentBytes? {
        guard state.withLock({ $0.channel == nil }) else { return nil }
        let (position, limit) = bounds()
        let wanted = min(count.upperBound, limit - position)
        guard wanted >= count.lowerBound, let lent = entry.lend(position..<position + wanted),
            lent.count >= count.lowerBound
        else { return nil }
        if let number, let fill = filler?.fill {
            fill.didAsk(number, at: position, now: storage.time.monotonicTime())
            fill.didAnswer(number, now: storage.time.monotonicTime())
        }
        didDeliver(lent.range)
        return lent
    }

    private func follow(atMost count: Int) async throws(CacheError) -> Data? {
        while true {
            if let bytes = try await passed() { return bytes }
            // In this order: what happens after the look at signal and flight is seen next time.
            let seen = filler?.fill.signal.version
            let outcome = state.withLock { $0.flight }?.outcome
            let (position, limit) = bounds()
            guard position < limit else {
                await linger()
                await takeName()
                try finish(position, limit)
                return nil
            }
            let bytes = await read(at: position, Int(min(Int64(count), limit - position)))
            guard bytes.isEmpty else {
                didDeliver(position..<position + Int64(bytes.count))
                return bytes
            }
            guard let filler, let seen else { throw missing(position) }
            noteMissing(at: position)
            try await wait(at: position, limit: limit, filler, seen: seen, outcome)
        }
    }

    /// Where the body is and where it ends, as far as that is known by now.
    private func bounds() -> (position: Int64, limit: Int64) {
        let (position, end) = state.withLock { ($0.position, $0.end) }
        let length = filler?.fill.completeLength(of: entry) ?? entry.completeLength
        return (position, min(end ?? .max, length ?? .max))
    }

    // MARK: Held bytes

    private func read(at position: Int64, _ count: Int) async -> Data {
        guard entry.held(at: position) != nil else { return Data() }
        let entry = entry
        let buffer = ReadBuffer(capacity: count)
        switch buffer.fill({ entry.readWithoutBlocking(at: position, into: $0) }) {
        case .ready(let read) where read > 0:
            return buffer.data(count: read)
        case .ready, .wouldBlock:
            // A disk to wait for; the blocking form also finds damaged blocks.
            let read = await storage.io.run { buffer.fill { entry.read(at: position, into: $0) } }
            return buffer.data(count: read)
        }
    }

    /// A block that was held and is a gap now was damaged: its bytes will be the origin's.
    private func noteMissing(at position: Int64) {
        state.withLock { $0.held.remove(BlockTable.extent(around: position)) }
    }

    private func didDeliver(_ range: Range<Int64>) {
        let missing = state.withLock { $0.held.gaps(in: range).count }
        counts.add(fromOrigin: missing)
        counts.add(fromCache: Int64(range.count) - missing)
        state.withLock { state in
            state.position = range.upperBound
            state.fruitless = 0
        }
    }

    /// Lets the flight of this reader come to its own end, which is at most a block away.
    ///
    /// So that the block is held and the connection can be used again. An origin that does not
    /// come to an end is waited for as long as for a reader that has left.
    private func linger() async {
        guard let filler, let flight = state.withLock({ $0.flight }), flight.outcome == nil,
            flight.isFirst || filler.awaitsVerdict
        else { return }
        let fill = filler.fill
        // Comparing digests takes as long as the body is long.
        let awaitsVerdict = filler.awaitsVerdict && entry.isComplete
        let patience =
            awaitsVerdict ? nil : storage.time.alarm(after: Lingering.patience) { flight.cancel() }
        defer { patience?.cancel() }
        while !Task.isCancelled, flight.outcome == nil {
            let seen = fill.signal.version
            guard flight.outcome == nil else { return }
            await fill.signal.wait(after: seen)
        }
    }

    /// Gives a body that follows a pinned one its name, where the flight that stored its last block has
    /// not come to that: from this reader's end on, a lookup finds what it has read.
    private func takeName() async {
        guard let filler, followsPinned, entry.isComplete else { return }
        let entry = entry
        let failure = await storage.writers.run { () -> CacheError? in
            do throws(CacheError) {
                _ = try entry.takeNameUnlessJudged()
                return nil
            } catch {
                return error
            }
        }
        storage.memory.remove(entry.key)
        guard let failure else { return }
        storage.recorder.didFailToStore(filler.request.key, filler.request.target, failure)
        state.withLock { $0.storageTrouble = failure }
    }

    /// The end, or, of a body whose length was not known at first, nothing where bytes were wanted.
    private func finish(_ position: Int64, _ limit: Int64) throws(CacheError) {
        let flight = state.withLock { $0.flight.take() }
        // All bytes are out, but the flight found that they are not those that were promised.
        if case .failure(let error) = flight?.outcome,
            [.representationChanged, .integrityFailed].contains(error.code)
        {
            throw error
        }
        flight?.cancel()
        guard position > limit else { return }
        throw CacheError(
            .rangeNotSatisfiable,
            "byte \(position) does not exist: the whole has \(limit) bytes"
        )
    }

    private func missing(_ position: Int64) -> CacheError {
        CacheError(
            mayStartAgain ? .representationChanged : .notCached,
            "byte \(position) is not held any more; fetch it again"
        )
    }

    // MARK: Bytes past the disk

    /// The next bytes of a gap that the disk did not take; nil where the disk goes on.
    private func passed() async throws(CacheError) -> Data? {
        guard let channel = state.withLock({ $0.channel }) else { return nil }
        guard let bytes = try await channel.next() else {
            // The flight ends where its gap did, which need not be the end of the body.
            let bodyEnd = channel.bodyEnd
            state.withLock { state in
                state.channel = nil
                if let bodyEnd { state.end = min(bodyEnd, state.end ?? .max) }
            }
            return nil
        }
        counts.add(fromOrigin: Int64(bytes.count))
        state.withLock { state in
            state.position += Int64(bytes.count)
            state.fruitless = 0
        }
        return bytes
    }

    // MARK: Flights

    /// Rides on another flight from now on; the one before is left outside the lock.
    func ride(_ flight: Subscription?) {
        let before = state.withLock { state in
            defer { state.flight = flight }
            return state.flight
        }
        if let number { filler?.fill.didJoin(flight?.flight, reader: number) }
        before?.cancel()
    }
}
