import DequeModule

/// Carries a body that is not stored from the transfer to its one reader, bounded in bytes.
///
/// States: `open` (chunks wait, or the reader waits, or the transfer waits for room) → `finished`
/// (the transfer has ended, with or without an error; what is buffered is still delivered) or
/// `abandoned` (the reader has left; the transfer learns it at its next push).
final class PassThroughChannel: Sendable {
    /// Buffered bytes above which the transfer waits.
    static let capacity = 512 * 1024
    /// Buffered bytes below which a transfer without a slot asks for one again: what it brings then
    /// is worth the turn.
    static let lowMark = capacity / 4

    /// How many chunks may wait before short ones are copied together: a chunk takes hundreds of
    /// bytes beside its own, and keeps all of the buffer that it was read into.
    static let maximumChunks = 8

    private struct State {
        var chunks = Deque<BodyChunk>()
        /// What follows the chunks, copied together from short ones.
        var joined: [UInt8] = []
        /// Bytes in both.
        var bytes = 0
        var finish: Result<Int64?, CacheError>?
        var isAbandoned = false
        var isClaimed = false
        var hasDelivered = false

        mutating func append(_ chunk: BodyChunk) {
            bytes += chunk.count
            let joins =
                BodyChunk.isShort(chunk.count)
                && (!joined.isEmpty || chunks.count >= PassThroughChannel.maximumChunks)
            if !joins || joined.count >= BodyChunk.joinedLength { endJoined() }
            if joins {
                chunk.withUnsafeBytes { joined.append(contentsOf: $0) }
            } else {
                chunks.append(chunk)
            }
        }

        mutating func popFirst() -> BodyChunk? {
            if chunks.isEmpty { endJoined() }
            guard let chunk = chunks.popFirst() else { return nil }
            bytes -= chunk.count
            return chunk
        }

        mutating func removeAll() {
            chunks.removeAll()
            joined = []
            bytes = 0
        }

        private mutating func endJoined() {
            guard !joined.isEmpty else { return }
            chunks.append(BodyChunk(joined))
            joined = []
        }
    }

    private let state = Guarded(State())
    /// Bumped when bytes come or are taken, and at the end.
    let signal = ProgressSignal()

    /// The offset of the first byte that the channel carries.
    let start: Int64

    /// The offset behind the last byte that the transfer was to bring.
    let end: Int64

    /// The length of the whole representation, if the origin has told.
    let completeLength: Int64?

    /// Whether the transfer compares the body with a digest, so that it may fail after its last
    /// byte.
    let awaitsDecision: Bool

    /// Whether what passes is kept as a part by itself.
    let isKept: Bool

    init(
        start: Int64,
        end: Int64 = .max,
        completeLength: Int64?,
        awaitsDecision: Bool = false,
        isKept: Bool = false
    ) {
        self.start = start
        self.end = end
        self.completeLength = completeLength
        self.awaitsDecision = awaitsDecision
        self.isKept = isKept
    }

    /// Whether the reader has taken bytes, so that no other generation may follow.
    var hasDelivered: Bool {
        state.withLock { $0.hasDelivered }
    }

    /// Whether all of `wanted` comes through here.
    func brings(_ wanted: WantedRange) -> Bool {
        start <= wanted.start && (wanted.end ?? completeLength ?? .max) <= end
    }

    /// Begins anew with another body of the same shape, because the first one broke off.
    ///
    /// - Parameters:
    ///   - start: the offset of the new body's first byte.
    ///   - completeLength: the length of the whole representation.
    /// - Returns: false if the reader has bytes of the first one, or the shapes differ.
    func restart(start: Int64, completeLength: Int64?) -> Bool {
        guard start == self.start, completeLength == self.completeLength else { return false }
        return state.withLock { state in
            guard !state.hasDelivered else { return false }
            state.removeAll()
            return true
        }
    }

    /// Makes sure that nobody claims the channel any more.
    ///
    /// - Returns: false if it has a reader already.
    func withdraw() -> Bool { claim() }

    /// Makes the caller the only reader; false if there is one already.
    func claim() -> Bool {
        state.withLock { state in
            defer { state.isClaimed = true }
            return !state.isClaimed
        }
    }

    /// Whether the reader has fallen behind so far that the transfer has to wait.
    var isFull: Bool {
        state.withLock { $0.bytes >= Self.capacity && !$0.isAbandoned }
    }

    /// Waits until fewer bytes than `mark` are buffered.
    ///
    /// - Throws: `.cancelled` once the reader has left or the task is cancelled.
    func waitForRoom(below mark: Int) async throws(CacheError) {
        while true {
            let seen = signal.version
            let (bytes, isAbandoned) = state.withLock { ($0.bytes, $0.isAbandoned) }
            guard !isAbandoned, !Task.isCancelled else {
                throw CacheError(.cancelled, "the reader has left")
            }
            guard bytes >= mark else { return }
            await signal.wait(after: seen)
        }
    }

    /// Hands a chunk over, waiting while the buffer is full.
    ///
    /// - Throws: `.cancelled` once the reader has left or the task is cancelled.
    func push(_ chunk: BodyChunk) async throws(CacheError) {
        while true {
            let seen = signal.version
            let accepted: Bool? = state.withLock { state in
                if state.isAbandoned { return nil }
                guard state.bytes < Self.capacity else { return false }
                state.append(chunk)
                return true
            }
            guard let accepted, !Task.isCancelled else {
                throw CacheError(.cancelled, "the reader has left")
            }
            if accepted { break }
            await signal.wait(after: seen)
        }
        signal.bump()
    }

    /// Where the body turned out to end; nil before that, or if it was not seen.
    var bodyEnd: Int64? {
        state.withLock { state in
            guard case .success(let end) = state.finish else { return nil }
            return end
        }
    }

    /// Ends the channel; chunks still buffered are delivered first.
    ///
    /// - Parameter result: where the body ends, as far as the transfer has seen it; or an error.
    func finish(_ result: Result<Int64?, CacheError>) {
        state.withLock { state in
            if state.finish == nil { state.finish = result }
        }
        signal.bump()
    }

    /// Says that nobody will read on.
    func abandon() {
        state.withLock { state in
            state.isAbandoned = true
            state.removeAll()
        }
        signal.bump()
    }

    /// The next chunk if it is there; an inner nil at the end.
    func poll() throws(CacheError) -> BodyChunk?? {
        let step = state.withLock { state -> Result<BodyChunk?, CacheError>? in
            if let chunk = state.popFirst() {
                state.hasDelivered = true
                return .success(chunk)
            }
            return state.finish.map { $0.map { _ in nil } }
        }
        guard let step else { return nil }
        signal.bump()
        return .some(try step.get())
    }

    /// Waits for the next chunk; nil at the end.
    func next() async throws(CacheError) -> BodyChunk? {
        while true {
            let seen = signal.version
            if let step = try poll() { return step }
            guard !Task.isCancelled else { throw CacheError(.cancelled, "the read was cancelled") }
            await signal.wait(after: seen)
        }
    }
}
