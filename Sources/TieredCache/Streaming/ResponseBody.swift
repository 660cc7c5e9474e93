public import FoundationEssentials

/// The bytes of a response, as an asynchronous sequence of chunks.
///
/// A chunk is at most 256 KiB, except that a body already in memory comes in one piece. Nothing
/// is read ahead: a consumer that stops reading holds at most one chunk. There is one reading
/// position: a second iterator goes on where the first one stopped. Dropping the body, or
/// cancelling the task that reads it, ends its part in the download; what arrived stays cached.
public struct ResponseBody: AsyncSequence, Sendable {
    /// A chunk of bytes, never empty.
    public typealias Element = Data
    /// What reading can fail with.
    public typealias Failure = CacheError

    let source: any BodySource

    init(_ source: any BodySource) {
        self.source = source
    }

    /// Starts, or continues, to read.
    public func makeAsyncIterator() -> AsyncIterator {
        AsyncIterator(source: source)
    }

    /// Reads a ``ResponseBody``.
    public struct AsyncIterator: AsyncIteratorProtocol {
        let source: any BodySource

        /// The next chunk, or nil at the end of the complete body.
        ///
        /// - Throws: `.representationChanged` when the origin no longer has the bytes that go with
        ///   those delivered; `.originFailed` and `.timedOut` after the retries; `.cancelled`.
        public mutating func next() async throws(CacheError) -> Data? {
            try await source.next()
        }

        /// The same as ``next()``; the actor's isolation plays no role.
        public mutating func next(
            isolation actor: isolated (any Actor)?
        ) async throws(CacheError) -> Data? {
            try await source.next()
        }

        /// The next chunk, of a certain size at most; what is in memory already may be longer.
        ///
        /// - Parameter count: the most bytes that are read from the disk; not negative.
        /// - Returns: the chunk, or nil at the end.
        /// - Throws: what ``next()`` throws.
        package mutating func next(atMost count: Int) async throws(CacheError) -> Data? {
            try await source.next(atMost: count)
        }

        /// Takes the next bytes as a part of their file, to be sent from there: nobody keeps them
        /// in memory while a client does not read.
        ///
        /// Never waits.
        ///
        /// - Parameter count: how many are worth it, and how many are wanted at most.
        /// - Returns: the bytes, which have been read then; nil where they are to be read by
        ///   ``next(atMost:)``.
        package mutating func lease(_ count: ClosedRange<Int64>) -> LeasedBytes? {
            source.lease(count)
        }
    }

    /// Reads the rest of the body into one piece.
    ///
    /// - Parameter limit: the most bytes to hold, by default 1 GiB.
    /// - Returns: the bytes.
    /// - Throws: what reading throws; `.invalidArgument` if there are more bytes than `limit`.
    public func collect(upTo limit: Int = 1 << 30) async throws(CacheError) -> Data {
        var result = Data()
        while let chunk = try await source.next() {
            guard chunk.count <= limit - result.count else {
                throw CacheError(
                    .invalidArgument,
                    "the body has more than \(limit) bytes; read it as a sequence instead"
                )
            }
            if result.isEmpty {
                result = chunk
            } else {
                result.append(chunk)
            }
        }
        return result
    }
}

/// Where a body's bytes come from; for one consumer at a time.
protocol BodySource: AnyObject, Sendable {
    /// The next chunk, never empty, or nil at the end; of at most `count` bytes where it comes from
    /// the disk.
    func next(atMost count: Int) async throws(CacheError) -> Data?
    /// Gives the next bytes as a part of their file, if there are enough of them; never waits.
    func lease(_ count: ClosedRange<Int64>) -> LeasedBytes?
    /// The delivered bytes by origin.
    var counts: ByteCounts { get }
    /// Why bytes were delivered that could not be stored; nil if there were none so far.
    var storageError: CacheError? { get }
    /// Whether the entry that is read is no longer what its key stands for.
    var isSuperseded: Bool { get }
    /// The number of the body on disk that the bytes are of; nil where they are not on disk.
    var generation: UInt64? { get }
    /// Under which key the bytes are stored; nil where they are not, or under the request's own.
    var storageKey: CacheKey? { get }
    /// What is read while it is being fetched; nil where the origin is not asked for more.
    var fetching: EntryFetching? { get }
    /// Gives the bytes to a reader; they are not read in order any more then.
    func open() -> ReaderBytes
}

extension BodySource {
    func next() async throws(CacheError) -> Data? { try await next(atMost: 256 << 10) }
    func lease(_ count: ClosedRange<Int64>) -> LeasedBytes? { nil }
    var storageError: CacheError? { nil }
    var isSuperseded: Bool { false }
    var generation: UInt64? { nil }
    var storageKey: CacheKey? { nil }
    var fetching: EntryFetching? { nil }
}

/// An entry, and what fetches the rest of it.
struct EntryFetching: Sendable {
    let entry: DiskEntry
    let fetcher: GapFetcher
}

/// A body, or part of one, that is in memory already.
final class MemoryBody: BodySource, BodyReader {
    private struct State {
        /// Let go of once it has been delivered in one piece.
        var bytes: Data?
        var counts = ByteCounts()
    }

    let storageKey: CacheKey?
    let generation: UInt64?
    private let start: Int64
    private let end: Int64
    private let state: Guarded<State>

    /// Holds bytes.
    ///
    /// - Parameters:
    ///   - bytes: which.
    ///   - start: the offset of the first.
    ///   - storageKey: under which key they are stored; nil for the request's own.
    ///   - generation: the number of the body on disk that they are of.
    init(
        _ bytes: Data,
        at start: Int64 = 0,
        storageKey: CacheKey? = nil,
        generation: UInt64? = nil
    ) {
        self.storageKey = storageKey
        self.generation = generation
        self.start = start
        end = start + Int64(bytes.count)
        state = Guarded(State(bytes: bytes.isEmpty ? nil : bytes))
    }

    var counts: ByteCounts { state.withLock { $0.counts } }
    var storageError: CacheError? { nil }
    var length: Int64? { end }
    var isSeekable: Bool { true }

    func open() -> ReaderBytes { .anywhere(self) }

    func next(atMost count: Int) async throws(CacheError) -> Data? {
        state.withLock { state in
            guard let bytes = state.bytes.take() else { return nil }
            state.counts.add(fromCache: Int64(bytes.count))
            return bytes
        }
    }

    func readAtOnce(_ read: Read) -> Int? {
        guard read.offset >= start, read.offset < end else { return 0 }
        return state.withLock { state in
            guard let bytes = state.bytes else { return 0 }
            let count = read.destination.copy(bytes.dropFirst(Int(read.offset - start)))
            state.counts.add(fromCache: Int64(count))
            return count
        }
    }

    func read(_ read: Read, until deadline: MonotonicTime?) async throws(CacheError) -> Int {
        readAtOnce(read) ?? 0
    }
}
