import DequeModule
import FoundationEssentials
import HTTPCaching

/// A body on its way from its transfer to its one reader, a window of it in memory at a time: one
/// that must not be stored, or the rest of one that the disk refuses (invariant 9).
///
/// States: `open` (bytes wait, or the reader waits, or the transfer waits for room) → `finished`
/// (the transfer has ended, with or without an error; bytes that wait are still taken) or `left`
/// (by its reader; the next ``append(_:at:)`` throws).
final class WindowBody: Sendable {
    /// The number of bytes from which the transfer waits.
    static let capacity = 512 * 1024
    /// The number of bytes below which a transfer without a slot requests one: what it fetches then
    /// is worth a slot.
    static let lowMark = capacity / 4

    /// The number of chunks from which short ones are copied together.
    ///
    /// A chunk costs hundreds of bytes beside its own, and keeps its whole read buffer alive.
    static let maximumChunks = 8

    private struct State {
        var chunks = Deque<BodyChunk>()
        /// The bytes after the chunks, copied together from short ones.
        var joined: [UInt8] = []
        /// The number of bytes of the first chunk that were taken.
        var taken = 0
        /// The number of bytes that wait.
        var bytes = 0
        /// The offset of the first of them.
        var position: Int64
        var finish: Result<Int64?, CacheError>?
        var hasReader = false
        var isLeft = false

        init(at position: Int64) {
            self.position = position
        }

        mutating func append(_ chunk: BodyChunk) {
            guard chunk.count > 0 else { return }
            bytes += chunk.count
            let joins =
                BodyChunk.isShort(chunk.count)
                && (!joined.isEmpty || chunks.count >= WindowBody.maximumChunks)
            if !joins || joined.count >= BodyChunk.joinedLength { endJoined() }
            if joins {
                chunk.withUnsafeBytes { joined.append(contentsOf: $0) }
            } else {
                chunks.append(chunk)
            }
        }

        /// Takes at most `count` bytes that lie in one chunk.
        mutating func take(atMost count: Int) -> Slice? {
            if chunks.isEmpty { endJoined() }
            guard let chunk = chunks.first else { return nil }
            let slice = Slice(chunk: chunk, bytes: taken..<taken + min(chunk.count - taken, count))
            taken = slice.bytes.upperBound
            bytes -= slice.bytes.count
            position += Int64(slice.bytes.count)
            if taken == chunk.count {
                chunks.removeFirst()
                taken = 0
            }
            return slice
        }

        mutating func removeAll() {
            chunks.removeAll()
            (joined, taken, bytes) = ([], 0, 0)
        }

        private mutating func endJoined() {
            guard !joined.isEmpty else { return }
            chunks.append(BodyChunk(joined))
            joined = []
        }
    }

    /// Bytes of a chunk.
    private struct Slice {
        let chunk: BodyChunk
        let bytes: Range<Int>

        var data: Data {
            chunk.withUnsafeBytes { Data(UnsafeRawBufferPointer(rebasing: $0[bytes])) }
        }
    }

    private let state: Guarded<State>
    /// Bumped when bytes arrive or are taken, and at the end.
    let signal = ProgressSignal()

    /// The offset of the first byte of the window when it was opened.
    let start: Int64

    /// The offset after the last byte that the transfer was to fetch.
    let end: Int64

    /// The length of the whole representation, if the origin has sent it.
    let completeLength: Int64?

    init(start: Int64, end: Int64 = .max, completeLength: Int64?) {
        self.start = start
        self.end = end
        self.completeLength = completeLength
        state = Guarded(State(at: start))
    }

    // MARK: The reader's side

    /// Whether the window delivers all wanted bytes.
    func delivers(_ wanted: WantedRange) -> Bool {
        start <= wanted.start && (wanted.end ?? completeLength ?? .max) <= end
    }

    /// Makes the caller the only reader; false if there is one already.
    func claim() -> Bool {
        state.withLock { state in
            defer { state.hasReader = true }
            return !state.hasReader
        }
    }

    /// The offset of the next byte that can be taken.
    var position: Int64 { state.withLock { $0.position } }

    /// The result of taking bytes.
    enum Taken {
        case bytes(Data)
        /// They have not arrived: the signal, which had this version, is bumped when they do.
        case awaited(seen: UInt64)
        case end
        /// They have been passed, or are too far ahead.
        case outOfReach
    }

    /// Takes bytes of one chunk if they are available, and drops those before them; never waits.
    ///
    /// - Parameters:
    ///   - offset: the offset of the first byte.
    ///   - count: the most bytes to take.
    ///   - reach: the most bytes to drop, or to wait for, before them.
    /// - Returns: the bytes, or why there are none.
    /// - Throws: what the transfer has ended with.
    func take(
        at offset: Int64,
        atMost count: Int,
        within reach: Int64 = .max
    ) throws(CacheError) -> Taken {
        let seen = signal.version
        let (step, hasTaken) = state.withLock { state -> (Result<Step, CacheError>, Bool) in
            let before = state.position
            while true {
                let ahead = offset - state.position
                guard (0...reach).contains(ahead) else { return (.success(.outOfReach), false) }
                // Those before `offset` are dropped a chunk at a time.
                let most = ahead > 0 ? Int(clamping: ahead) : count
                guard let slice = state.take(atMost: most) else {
                    let end = state.finish?.map { _ in Step.end } ?? .success(.awaited)
                    return (end, state.position != before)
                }
                if ahead == 0 { return (.success(.bytes(slice)), true) }
            }
        }
        if hasTaken { signal.bump() }
        switch try step.get() {
        case .bytes(let slice): return .bytes(slice.data)
        case .awaited: return .awaited(seen: seen)
        case .end: return .end
        case .outOfReach: return .outOfReach
        }
    }

    private enum Step {
        case bytes(Slice)
        case awaited
        case end
        case outOfReach
    }

    /// The end of the body; nil until it is known, and if the transfer did not receive it.
    var bodyEnd: Int64? {
        state.withLock { state in
            guard case .success(let end) = state.finish else { return nil }
            return end
        }
    }

    /// Ends the window from the reader's side: bytes that wait are dropped.
    func leave() {
        state.withLock { state in
            state.isLeft = true
            state.removeAll()
        }
        signal.bump()
    }

    // MARK: The transfer's side

    /// Whether the reader has taken bytes, so that no other generation may follow.
    var hasDelivered: Bool { position != start }

    /// Restarts with another body of the same shape, after the first one broke off.
    ///
    /// - Parameters:
    ///   - start: the offset of the new body's first byte.
    ///   - completeLength: the length of the whole representation.
    /// - Returns: false if the reader has bytes of the first body, or the shapes differ.
    func restart(start: Int64, completeLength: Int64?) -> Bool {
        guard start == self.start, completeLength == self.completeLength else { return false }
        return state.withLock { state in
            guard state.position == start else { return false }
            state.removeAll()
            return true
        }
    }

    /// Whether the window is full, so that the transfer has to wait for the reader.
    var isFull: Bool { state.withLock { $0.bytes >= Self.capacity && !$0.isLeft } }

    /// Waits until fewer bytes than `mark` wait.
    ///
    /// - Throws: `.cancelled` once the reader has left or the task is cancelled.
    func waitForRoom(below mark: Int = capacity) async throws(CacheError) {
        while true {
            let seen = signal.version
            // Behind `seen`: a bump after this look ends the wait below at once.
            let (bytes, isLeft) = state.withLock { ($0.bytes, $0.isLeft) }
            guard !isLeft, !Task.isCancelled else {
                throw CacheError(.cancelled, "the reader has left")
            }
            guard bytes >= mark else { return }
            await signal.wait(after: seen)
        }
    }

    /// Appends bytes of the body; waits while the window is full.
    ///
    /// Those that have come before are left out: after a lost connection an origin without ranges
    /// sends the body from its start again.
    ///
    /// - Parameters:
    ///   - chunk: the bytes.
    ///   - offset: where they lie in the body.
    /// - Throws: `.cancelled` once the reader has left or the task is cancelled; `.originFailed` for
    ///   bytes behind others that have not come.
    func append(_ chunk: BodyChunk, at offset: Int64) async throws(CacheError) {
        try await waitForRoom()
        let isInOrder = state.withLock { state in
            let known = state.position + Int64(state.bytes) - offset
            guard known >= 0, !state.isLeft else { return state.isLeft }
            if known == 0 {
                state.append(chunk)
            } else if known < chunk.count {
                state.append(BodyChunk(chunk.withUnsafeBytes { [UInt8]($0[Int(known)...]) }))
            }
            return true
        }
        guard isInOrder else {
            throw CacheError(.originFailed, "the bytes before byte \(offset) are missing")
        }
        signal.bump()
    }

    /// Ends the window; bytes that wait are taken first.
    ///
    /// - Parameter result: the end of the body, as far as the transfer has received it; or an
    ///   error.
    func finish(_ result: Result<Int64?, CacheError>) {
        state.withLock { state in
            if state.finish == nil { state.finish = result }
        }
        signal.bump()
    }
}
