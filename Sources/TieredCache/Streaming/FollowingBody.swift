import FoundationEssentials
import HTTPCaching

/// A body that is read from its disk entry, following the flights that fill it.
///
/// What is held is delivered at once; at a gap the body joins the flight that will bring the byte,
/// or makes one. It stays with one generation (invariant 3): if the origin has another by the time
/// a gap is reached, it fails rather than join the two.
final class FollowingBody: BodySource {
    private struct State {
        var position: Int64
        var end: Int64?
        var flight: Subscription?
        var channel: PassThroughBody?
        /// Flights in a row that ended well and did not bring the byte.
        var fruitless = 0
    }

    static let chunkSize = 256 * 1024

    let counts = ByteCounts()
    private let entry: DiskEntry
    private let engine: Engine
    private let filler: Filler?
    /// What was held when the body was opened: those bytes count as the cache's.
    private let heldAtStart: ByteRangeSet
    private let state: Guarded<State>

    /// Opens a body.
    ///
    /// - Parameters:
    ///   - entry: what is read.
    ///   - wanted: the bytes to deliver.
    ///   - engine: whose threads read the disk.
    ///   - filler: fetches what is missing; nil where the origin must not be asked.
    ///   - flight: a flight that is under way for the first missing byte.
    ///   - heldBefore: what was held before that flight began; nil for what is held now.
    init(
        entry: DiskEntry,
        wanted: WantedRange,
        engine: Engine,
        filler: Filler?,
        flight: Subscription? = nil,
        heldBefore: ByteRangeSet? = nil
    ) {
        self.entry = entry
        self.engine = engine
        self.filler = filler
        heldAtStart = heldBefore ?? entry.heldRanges
        state = Guarded(State(position: wanted.start, end: wanted.end, flight: flight))
    }

    func next() async throws(CacheError) -> Data? {
        if let channel = state.withLock({ $0.channel }) { return try await pass(channel) }
        while true {
            let (position, end) = state.withLock { ($0.position, $0.end) }
            let limit = end ?? entry.completeLength ?? .max
            guard position < limit else {
                finish()
                return nil
            }
            let seen = filler?.fill.signal.version
            let bytes = await read(at: position, limit: limit)
            if !bytes.isEmpty { return deliver(bytes, at: position) }
            guard let filler, let seen else { throw missing(position) }
            if let channel = try await wait(at: position, limit: limit, filler, seen: seen) {
                return try await pass(channel)
            }
        }
    }

    // MARK: Held bytes

    private func read(at position: Int64, limit: Int64) async -> Data {
        let count = Int(min(Int64(Self.chunkSize), limit - position))
        let entry = entry
        let buffer = ReadBuffer(capacity: count)
        switch buffer.fill({ entry.readWithoutBlocking(at: position, into: $0) }) {
        case .ready(let read) where read > 0:
            return buffer.data(count: read)
        case .ready, .wouldBlock:
            // Nothing yet, or a disk to wait for; the blocking form also finds damaged blocks.
            let read = await engine.io.run { buffer.fill { entry.read(at: position, into: $0) } }
            return buffer.data(count: read)
        }
    }

    private func deliver(_ bytes: Data, at position: Int64) -> Data {
        let range = position..<position + Int64(bytes.count)
        let missing = heldAtStart.gaps(in: range).count
        counts.add(fromOrigin: missing)
        counts.add(fromCache: Int64(bytes.count) - missing)
        state.withLock { state in
            state.position = range.upperBound
            state.fruitless = 0
        }
        return bytes
    }

    private func finish() {
        let flight = state.withLock { $0.flight.take() }
        flight?.cancel()
    }

    private func missing(_ position: Int64) -> CacheError {
        CacheError(.notCached, "byte \(position) is not held any more; fetch it again")
    }

    // MARK: Missing bytes

    /// Waits until something has changed about the missing byte at `position`.
    ///
    /// - Returns: the rest of the body, where the disk has failed and it is passed through.
    private func wait(
        at position: Int64,
        limit: Int64,
        _ filler: Filler,
        seen: UInt64
    ) async throws(CacheError) -> PassThroughBody? {
        guard !Task.isCancelled else { throw CacheError(.cancelled, "the read was cancelled") }
        if filler.hasOtherGeneration(than: entry), entry.isSuperseded {
            throw CacheError(
                .representationChanged,
                "\(filler.request.target.redacted) changed at the origin; start again from 0"
            )
        }
        let flight = state.withLock { $0.flight }
        guard let flight else {
            try join(filler, at: position, limit: limit)
            return nil
        }
        switch filler.claimChannel(of: flight, at: position) {
        case .no:
            break
        case .claimed(let channel):
            let body = PassThroughBody(channel, range: position..<limit, subscription: flight)
            state.withLock { ($0.channel, $0.flight) = (body, nil) }
            return body
        case .forOthers:
            try join(filler, at: position, limit: limit, isAlone: true)
            return nil
        }
        if let outcome = flight.outcome {
            state.withLock { $0.flight = nil }
            try outcome.get()
            return nil
        }
        await filler.fill.signal.wait(after: seen)
        return nil
    }

    private func join(
        _ filler: Filler,
        at position: Int64,
        limit: Int64,
        isAlone: Bool = false
    ) throws(CacheError) {
        let fruitless = state.withLock { state in
            state.fruitless += 1
            return state.fruitless
        }
        guard fruitless <= 3 else {
            throw CacheError(
                .originFailed,
                "\(filler.request.target.redacted) did not deliver byte \(position)"
            )
        }
        // Several readers without a disk cannot share one channel: the later ones fetch alone.
        let flight = filler.join(
            entry,
            at: position,
            limit: limit,
            isAlone: isAlone || fruitless > 1
        )
        // The one before is left only now, and outside the lock.
        let before = state.withLock { state in
            defer { state.flight = flight }
            return state.flight
        }
        before?.cancel()
    }

    private func pass(_ channel: PassThroughBody) async throws(CacheError) -> Data? {
        guard let bytes = try await channel.next() else { return nil }
        counts.add(fromOrigin: Int64(bytes.count))
        return bytes
    }
}
