import FoundationEssentials
import HTTPCaching

/// Reads a disk entry at any offset and has what is missing fetched, where the reader is.
///
/// May be read from several tasks at once, though one is what it is made for. As a body it is read in
/// order, from where its request begins.
final class EntryMedium: ReaderMedium, BodySource {
    /// A share in a flight, and the bytes for which it was asked.
    struct Ride: Sendable {
        let window: Int
        let range: Range<Int64>
        let flight: Subscription
    }

    struct State: Sendable {
        /// Where the body is.
        var position: Int64
        var planner: ReadAheadPlanner
        var rides: [Ride] = []
        /// The rest of a gap that the disk did not take.
        var spill: OneWayBytes?
        var storageTrouble: CacheError?
        /// What was held when the reader was opened and is held ever since: those bytes count as the
        /// cache's.
        var heldAtStart: ByteRangeSet
    }

    let entry: DiskEntry
    let storage: Storage
    let filler: Filler?
    let control: ReadControl
    let counts = ByteCounts()
    let state: Guarded<State>
    /// This reader's number on the fill's roll.
    let number: UInt64?
    /// Where the body ends; nil while that is not known.
    private let end: Int64?
    /// Where the consumer of the body will stop, if it has said so.
    private let certainEnd: Int64?
    /// How long the body waits for a byte.
    private let deadline: Duration

    /// Reads on from the bytes that a reader's first request is for.
    ///
    /// - Parameters:
    ///   - opening: what is read.
    ///   - spec: the bytes that the request is for.
    ///   - wanted: the bytes that the reader may come to.
    ///   - scope: how they are read.
    init(
        _ opening: EntryOpening,
        from spec: ByteRangeSpec?,
        _ wanted: WantedRange,
        _ scope: ReaderScope
    ) {
        entry = opening.entry
        storage = opening.storage
        filler = opening.filler
        end = wanted.end
        certainEnd = if case .bounded(let range) = scope.range { range.upperBound } else { nil }
        deadline = scope.options.deadline
        control = ReadControl(signal: filler?.fill.signal ?? ProgressSignal())
        var state = State(
            position: wanted.start,
            planner: ReadAheadPlanner(options: scope.options.planner),
            heldAtStart: opening.heldBefore ?? entry.heldRanges
        )
        let now = storage.time.monotonicTime()
        let first = if case .bounded(let range) = spec { range } else { 0..<Int64.max }
        let window = state.planner.begin(first, now: now)
        if let flight = opening.flight {
            state.rides.append(Ride(window: window, range: first, flight: flight))
        }
        self.state = Guarded(state)
        number = filler?.fill.enter(
            at: first.lowerBound,
            flight: opening.flight?.flight,
            now: now
        )
    }

    deinit {
        let rides = state.withLock { $0.rides }
        guard let filler else { return }
        if let number { filler.fill.leave(number) }
        Lingering.begin(rides.map(\.flight), of: entry, filler.fill, storage.time)
    }

    var length: Int64? {
        filler?.fill.completeLength(of: entry) ?? entry.completeLength
    }

    var storageTrouble: CacheError? { state.withLock { $0.storageTrouble } }
    var isSuperseded: Bool { entry.isSuperseded }
    var generation: UInt64? { entry.generation }
    var storageKey: CacheKey? { entry.key }

    func openMedium() -> (any ReaderMedium)? { self }

    var isSeekable: Bool { !isSequential || holdsAll }

    /// Whether every byte can be read, the end included that a flight has not sealed yet.
    private var holdsAll: Bool {
        guard let length = entry.completeLength else { return false }
        return length == 0 || entry.held(at: 0).map { $0.upperBound >= length } ?? false
    }

    /// Whether the origin sends the body only as a whole, so that its bytes are waited for.
    var isSequential: Bool {
        filler?.isSequential(entry) ?? true
    }

    // MARK: Reading in order

    func next(atMost count: Int) async throws(CacheError) -> Data? {
        let (offset, left) = rest
        let count = min(Int64(count), left)
        guard count > 0 else { return nil }
        let buffer = ReadBuffer(capacity: Int(count))
        let destination = buffer.fill { ReadDestination(buffer: $0) }
        let read = Read(offset: offset, destination: destination, certainEnd: certainEnd)
        let got = try await self.read(read, until: now.advanced(by: deadline))
        guard got > 0 else { return nil }
        state.withLock { $0.position += Int64(got) }
        return buffer.data(count: got)
    }

    func lend(_ count: ClosedRange<Int64>) -> LentBytes? {
        let (offset, left) = rest
        let wanted = min(count.upperBound, left, (length ?? .max) - offset)
        guard wanted >= count.lowerBound, control.isOpen,
            let lent = entry.lend(offset..<offset + wanted), lent.count >= count.lowerBound
        else { return nil }
        noteRead(at: lent.range.upperBound)
        didRead(lent.range, certainTo: certainEnd)
        state.withLock { $0.position = lent.range.upperBound }
        return lent
    }

    /// The next byte, and how many there are from there on at most.
    private var rest: (offset: Int64, left: Int64) {
        let offset = state.withLock { $0.position }
        return (offset, (end ?? .max) - offset)
    }

    // MARK: Reading anywhere

    func readAtOnce(_ read: Read) -> Int? {
        if let length, read.offset >= length { return 0 }
        guard entry.held(at: read.offset) != nil else { return nil }
        let count = entry.read(at: read.offset, into: read.destination.buffer)
        guard count > 0 else { return nil }
        noteRead(at: read.offset + Int64(count))
        didRead(read.offset..<read.offset + Int64(count), certainTo: read.certainEnd)
        return count
    }

    /// A reader that is not heard of would count as one that has stopped.
    private func noteRead(at offset: Int64) {
        guard let number else { return }
        filler?.fill.didAsk(number, at: offset, now: now)
        filler?.fill.didAnswer(number, now: now)
    }

    func read(_ read: Read, until deadline: MonotonicTime) async throws(CacheError) -> Int {
        let fill = filler?.fill
        if let number { fill?.didAsk(number, at: read.offset, now: now) }
        defer { if let number { fill?.didAnswer(number, now: now) } }
        var patience = Patience(deadline: deadline)
        while true {
            try control.check()
            // In this order: what happens after the look at signal and flights is seen next time.
            let seen = control.signal.version
            let rides = state.withLock { $0.rides }.map { ($0, $0.flight.outcome) }
            if let count = await readHeld(read) { return count }
            guard let filler else { throw missing(read.offset) }
            didMiss(read.offset)
            if let taken = try await passed(read, seen: seen, patience) {
                guard let count = taken else { continue }
                return count
            }
            do throws(CacheError) {
                try await wait(for: read, filler, rides, seen: seen, &patience)
            } catch {
                try await patience.retry(after: error, control, storage.time)
            }
        }
    }

    private var now: MonotonicTime { storage.time.monotonicTime() }

    /// Bytes that are held, 0 at the end; nil if the byte is missing.
    private func readHeld(_ read: Read) async -> Int? {
        if let length, read.offset >= length { return 0 }
        guard entry.held(at: read.offset) != nil else { return nil }
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
        didRead(read.offset..<read.offset + Int64(count), certainTo: read.certainEnd)
        return count
    }

    private func didRead(_ range: Range<Int64>, certainTo end: Int64?) {
        let missing = state.withLock { $0.heldAtStart.gaps(in: range).count }
        counts.add(fromOrigin: missing)
        counts.add(fromCache: Int64(range.count) - missing)
        storage.recorder.didRead(Int64(range.count) - missing, from: .disk)
        guard let filler, !entry.isComplete else { return }
        readAhead(of: range, certainTo: end, filler)
    }

    /// What is not held any more, being damaged or given up, comes from the origin.
    private func didMiss(_ offset: Int64) {
        state.withLock { $0.heldAtStart.remove(BlockTable.extent(around: offset)) }
    }

    private func missing(_ offset: Int64) -> CacheError {
        CacheError(.notCached, "byte \(offset) is not held and may not be fetched")
    }

    // MARK: Bytes past the disk

    /// The next bytes of a gap that the disk did not take.
    ///
    /// - Returns: nil where there is none; an inner nil after something has changed.
    private func passed(
        _ read: Read,
        seen: UInt64,
        _ patience: Patience
    ) async throws(CacheError) -> Int?? {
        guard let spill = state.withLock({ $0.spill }) else { return nil }
        guard spill.position <= read.offset,
            read.offset - spill.position <= ReadAheadPlanner.Options().bridge
        else {
            dropSpill(spill)
            return nil
        }
        guard spill.skip(to: read.offset) || spill.position < read.offset else { return nil }
        // Bytes before the wanted ones are taken into the same memory and forgotten.
        let isWanted = spill.position == read.offset
        switch spill.take(read.destination) {
        case .bytes(let count):
            guard isWanted else { return .some(nil) }
            counts.add(fromOrigin: Int64(count))
            return count
        case .awaited:
            try patience.check(read.offset, storage.time)
            await control.wait(after: seen, until: patience.deadline, time: storage.time)
            return .some(nil)
        case .end:
            dropSpill(spill)
            return nil
        case .failed(let error):
            dropSpill(spill)
            throw error
        }
    }

    private func dropSpill(_ spill: OneWayBytes) {
        state.withLock { state in
            if state.spill === spill { state.spill = nil }
        }
    }
}
