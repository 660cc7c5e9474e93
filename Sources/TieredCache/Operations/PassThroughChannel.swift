import DequeModule

/// Carries a body that is not stored from the transfer to its one reader; bounded in bytes.
///
/// States: `open` (chunks wait, or the reader waits, or the transfer waits for space) → `finished`
/// (the transfer has ended, with or without an error; buffered bytes are still delivered) or
/// `abandoned` (the reader has left; the next push of the transfer throws).
final class PassThroughChannel: Sendable {
    /// The number of buffered bytes from which the transfer waits.
    static let capacity = 512 * 1024
    /// The number of buffered bytes below which a transfer without a slot requests one: what it
    /// fetches then is worth a slot.
    static let lowMark = capacity / 4

    /// The number of chunks from which short ones are copied together.
    ///
    /// A chunk costs hundreds of bytes beside its own, and keeps its whole read buffer alive.
    static let maximumChunks = 8

    private struct State {
        var chunks = Deque<BodyChunk>()
        /// The bytes after the chunks, copied together from short ones.
        var joined: [UInt8] = []
        /// The number of bytes in both.
        var bytes = 0
        var finish: Result<Int64?, CacheError>?
        var isAbandoned = false
        var isClaimed = false
        var isCompared = false
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
    /// Bumped when bytes arrive or are taken, and at the end.
    let signal = ProgressSignal()

    /// The offset of the first byte that the channel carries.
    let start: Int64

    /// The offset after the last byte that the transfer was to fetch.
    let end: Int64

    /// The length of the whole representation, if the origin has sent it.
    let completeLength: Int64?

    /// Whether the transfer verifies a digest of the body, so that it may fail after its last byte.
    let awaitsDecision: Bool

    /// The digests that the request of the transfer expects: the channel is only for a reader that
    /// expects the same.
    let expectedDigests: [ContentDigest]

    /// Whether the bytes are stored as a standalone part.
    let storesPart: Bool

    init(
        start: Int64,
        end: Int64 = .max,
        completeLength: Int64?,
        awaitsDecision: Bool = false,
        expectedDigests: [ContentDigest] = [],
        storesPart: Bool = false
    ) {
        self.start = start
        self.end = end
        self.completeLength = completeLength
        self.awaitsDecision = awaitsDecision
        self.expectedDigests = expectedDigests
        self.storesPart = storesPart
    }

    /// Whether the transfer has compared all of the body, and found it right.
    var isCompared: Bool { state.withLock { $0.isCompared } }

    /// Notes a body that was compared, before ``finish(_:)``.
    func didCompare() { state.withLock { $0.isCompared = true } }

    /// Whether the reader has taken bytes, so that no other generation may follow.
    var hasDelivered: Bool {
        state.withLock { $0.hasDelivered }
    }

    /// Whether the channel delivers all wanted bytes.
    func delivers(_ wanted: WantedRange) -> Bool {
        start <= wanted.start && (wanted.end ?? completeLength ?? .max) <= end
    }

    /// Restarts with another body of the same shape, after the first one broke off.
    ///
    /// - Parameters:
    ///   - start: the offset of the new body's first byte.
    ///   - completeLength: the length of the whole representation.
    /// - Returns: false if the reader has bytes of the first body, or the shapes differ.
    func restart(start: Int64, completeLength: Int64?) -> Bool {
        guard start == self.start, completeLength == self.completeLength else { return false }
        return state.withLock { state in
            guard !state.hasDelivered else { return false }
            state.removeAll()
            return true
        }
    }

    /// Ensures that no reader claims the channel from now on.
    ///
    /// - Returns: false if it has a reader already.
    func withdraw() -> Bool { claim() }

    /// Makes a request that expects these digests the only reader.
    ///
    /// - Returns: false if there is a reader already, or the body is compared with other digests.
    func claim(expecting digests: [ContentDigest]) -> Bool {
        digests == expectedDigests && claim()
    }

    /// Makes the caller the only reader; false if there is one already.
    func claim() -> Bool {
        state.withLock { state in
            defer { state.isClaimed = true }
            return !state.isClaimed
        }
    }

    /// Whether the buffer is full, so that the transfer has to wait for the reader.
    var isFull: Bool {
        state.withLock { $0.bytes >= Self.capacity && !$0.isAbandoned }
    }

    /// Waits until fewer bytes than `mark` are buffered.
    ///
    /// - Throws: `.cancelled` once the reader has left or the task is cancelled.
    func waitForRoom(below mark: Int) async throws(CacheError) {
        while true {
            let seen = signal.version
            // Behind `seen`: a bump after this look ends the wait below at once.
            let (bytes, isAbandoned) = state.withLock { ($0.bytes, $0.isAbandoned) }
            guard !isAbandoned, !Task.isCancelled else {
                throw CacheError(.cancelled, "the reader has left")
            }
            guard bytes >= mark else { return }
            await signal.wait(after: seen)
        }
    }

    /// Appends a chunk; waits while the buffer is full.
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

    /// The end of the body; nil until it is known, and if the transfer did not receive it.
    var bodyEnd: Int64? {
        state.withLock { state in
            guard case .success(let end) = state.finish else { return nil }
            return end
        }
    }

    /// Ends the channel; chunks still buffered are delivered first.
    ///
    /// - Parameter result: the end of the body, as far as the transfer has received it; or an
    ///   error.
    func finish(_ result: Result<Int64?, CacheError>) {
        state.withLock { state in
            if state.finish == nil { state.finish = result }
        }
        signal.bump()
    }

    /// Ends the channel from the reader's side: buffered bytes are dropped.
    func abandon() {
        state.withLock { state in
            state.isAbandoned = true
            state.removeAll()
        }
        signal.bump()
    }

    /// The next chunk if it is available; an inner nil at the end.
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
