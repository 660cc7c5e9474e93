public import FoundationEssentials

/// The bytes of a response, as an asynchronous sequence of chunks.
///
/// A chunk is at most 256 KiB, except that a body in memory comes in one piece. No bytes are read
/// ahead: a consumer that stops reading holds at most one chunk. There is one reading position: a
/// second iterator continues where the first one stopped. Releasing the body, or cancelling the
/// task that reads it, ends its use of the download; bytes received so far stay cached.
public struct ResponseBody: AsyncSequence, Sendable {
    /// A chunk of bytes, never empty.
    public typealias Element = Data
    /// The error of a read.
    public typealias Failure = CacheError

    let source: any BodySource

    init(_ source: any BodySource) {
        self.source = source
    }

    /// Starts or continues reading.
    public func makeAsyncIterator() -> AsyncIterator {
        AsyncIterator(source: source)
    }

    /// Reads a ``ResponseBody``.
    public struct AsyncIterator: AsyncIteratorProtocol {
        let source: any BodySource

        /// The next chunk, or nil at the end of the complete body.
        ///
        /// - Throws: `.representationChanged` if the origin no longer has the representation of the
        ///   delivered bytes; `.originFailed` and `.timedOut` after the retries; `.cancelled`.
        public mutating func next() async throws(CacheError) -> Data? {
            try await source.next()
        }

        /// The same as ``next()``; the isolation of the actor is ignored.
        public mutating func next(
            isolation actor: isolated (any Actor)?
        ) async throws(CacheError) -> Data? {
            try await source.next()
        }

        /// The next chunk with a limited size; a body in memory may be longer.
        ///
        /// - Parameter count: the maximum number of bytes read from disk; not negative.
        /// - Returns: the chunk, or nil at the end.
        /// - Throws: the errors of ``next()``.
        package mutating func next(atMost count: Int) async throws(CacheError) -> Data? {
            try await source.next(atMost: count)
        }

        /// Leases the next bytes as a region of their file, to be sent from there without a copy in
        /// memory.
        ///
        /// Never waits.
        ///
        /// - Parameters:
        ///   - count: the minimum number of bytes for a lease, and the maximum.
        ///   - send: sends what can be sent now, and returns how many bytes that is; nil if they
        ///     cannot be sent so.
        /// - Returns: how many, which count as read; nil if they are to be read by
        ///   ``next(atMost:)``.
        package mutating func lease(
            _ count: ClosedRange<Int64>,
            send: (LeasedBytes) -> Int64?
        ) -> Int64? {
            source.lease(count, send: send)
        }
    }

    /// Reads the rest of the body into one piece.
    ///
    /// - Parameter limit: the maximum number of bytes, by default 1 GiB.
    /// - Returns: the bytes.
    /// - Throws: the errors of reading; `.invalidArgument` if there are more bytes than `limit`.
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

/// The source of a body's bytes; for one consumer at a time.
protocol BodySource: AnyObject, Sendable {
    /// The next chunk, never empty, or nil at the end; of at most `count` bytes if it is read from
    /// disk.
    func next(atMost count: Int) async throws(CacheError) -> Data?
    /// Leases the next bytes as a region of their file, if there are enough of them; never waits.
    func lease(_ count: ClosedRange<Int64>, send: (LeasedBytes) -> Int64?) -> Int64?
    /// The numbers of delivered bytes by source.
    var counts: ByteCounts { get }
    /// Why delivered bytes could not be stored; nil if there were none so far.
    var storageError: CacheError? { get }
    /// Whether the entry has lost its key to another one, or was removed.
    var isSuperseded: Bool { get }
    /// The generation of the body on disk; nil if the bytes are not on disk.
    var generation: UInt64? { get }
    /// The key of the stored bytes; nil if they are not stored, or under the request's own key.
    var storageKey: CacheKey? { get }
    /// The entry, while its missing bytes are fetched; nil if the origin is not asked.
    var fetching: EntryFetching? { get }
    /// Whether reading may start a transfer.
    var mayFetch: Bool { get }
    /// Gives the bytes to a reader; sequential reads end.
    func open() -> ReaderBytes
}

extension BodySource {
    func next() async throws(CacheError) -> Data? { try await next(atMost: 256 << 10) }
    func lease(_ count: ClosedRange<Int64>, send: (LeasedBytes) -> Int64?) -> Int64? { nil }
    var storageError: CacheError? { nil }
    var isSuperseded: Bool { false }
    var generation: UInt64? { nil }
    var storageKey: CacheKey? { nil }
    var fetching: EntryFetching? { nil }
    var mayFetch: Bool { false }
}

/// An entry, and the fetcher of its missing bytes.
struct EntryFetching: Sendable {
    let entry: DiskEntry
    let fetcher: GapFetcher
}

/// A body, or part of one, in memory.
final class MemoryBody: BodySource, BodyReader {
    private struct State {
        /// Released once it has been delivered in one piece.
        var bytes: Data?
        var counts = ByteCounts()
    }

    let storageKey: CacheKey?
    let generation: UInt64?
    /// Whether the bytes have just come from the origin.
    let isFetched: Bool
    private let entry: DiskEntry?
    private let start: Int64
    private let end: Int64
    private let state: Guarded<State>

    /// Creates a body.
    ///
    /// - Parameters:
    ///   - bytes: its bytes.
    ///   - start: the offset of the first byte.
    ///   - storageKey: the key that they are stored under; nil for the request's own.
    ///   - generation: the generation of the body on disk.
    ///   - isFetched: whether they have just come from the origin.
    ///   - entry: where they were stored then; nil if they were not.
    init(
        _ bytes: Data,
        at start: Int64 = 0,
        storageKey: CacheKey? = nil,
        generation: UInt64? = nil,
        isFetched: Bool = false,
        in entry: DiskEntry? = nil
    ) {
        self.storageKey = storageKey ?? entry?.key
        self.generation = generation ?? entry?.generation
        (self.isFetched, self.entry) = (isFetched, entry)
        self.start = start
        end = start + Int64(bytes.count)
        state = Guarded(State(bytes: bytes.isEmpty ? nil : bytes))
    }

    var isSuperseded: Bool { entry?.isSuperseded ?? false }
    var counts: ByteCounts { state.withLock { $0.counts } }
    var storageError: CacheError? { nil }
    var length: Int64? { end }
    var isSeekable: Bool { true }
    var storedRanges: [Range<Int64>] { start < end ? [start..<end] : [] }

    func open() -> ReaderBytes { .seekable(self) }

    func next(atMost count: Int) async throws(CacheError) -> Data? {
        state.withLock { state -> Data? in
            guard let bytes = state.bytes.take() else { return nil }
            self.count(bytes.count, in: &state)
            return bytes
        }
    }

    func readWithoutWaiting(_ read: Read) -> Int? {
        guard read.offset >= start, read.offset < end else { return 0 }
        return state.withLock { state in
            guard let bytes = state.bytes else { return 0 }
            let count = read.destination.copy(bytes.dropFirst(Int(read.offset - start)))
            self.count(count, in: &state)
            return count
        }
    }

    private func count(_ count: Int, in state: inout State) {
        if isFetched {
            state.counts.add(fromOrigin: Int64(count))
        } else {
            state.counts.add(fromCache: Int64(count))
        }
    }

    func read(_ read: Read, until deadline: MonotonicTime?) async throws(CacheError) -> Int {
        readWithoutWaiting(read) ?? 0
    }
}
