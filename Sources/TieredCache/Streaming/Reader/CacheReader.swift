public import FoundationEssentials
public import HTTPCaching
public import HTTPTypes

/// A seekable reader over one entry, which may still be on its way.
///
/// Returns stored bytes at once, wherever they lie. Fetches missing bytes from the position of a
/// read on, and a little ahead of it, and stores them. Readers of one entry share transfers. A
/// reader sees one generation: if the origin changes, stored bytes go on being read, and a byte
/// that is missing fails with `.representationChanged`.
///
/// One reader is for one consumer; open another for another. It may be cancelled and interrupted
/// from any thread. Letting go of it closes it: a transfer that is under way lingers for two
/// seconds, for a reader that comes back.
public final class CacheReader: Sendable {
    /// What was asked for.
    public let request: CacheRequest
    /// The status of the representation.
    public let status: HTTPResponse.Status
    /// The fields of the representation, connection fields left out.
    public let fields: HTTPFields
    /// The URL that answered after redirects.
    public let finalTarget: TargetURI
    /// What the cache did to open the reader, in the words of RFC 9211.
    public let cacheStatus: CacheStatus
    /// The options of the reader; a read may pass a deadline of its own.
    public let options: ReaderOptions

    let source: any BodyReader
    let control = ReadControl()
    private let time: any TimeSource
    private let cursor: Guarded<Int64>
    private let failure = Guarded<CacheError?>(nil)

    init(
        _ source: any BodyReader,
        request: CacheRequest,
        response: CacheResponse,
        position: Int64,
        options: ReaderOptions,
        time: any TimeSource
    ) {
        cursor = Guarded(position)
        self.request = request
        status = response.status
        fields = response.fields
        finalTarget = response.finalTarget
        cacheStatus = response.cacheStatus
        self.options = options
        self.source = source
        self.time = time
    }

    // MARK: What is known

    /// The length of the whole representation, nil while it is not known.
    ///
    /// Never waits.
    public var size: Int64? { source.length }

    /// Whether bytes anywhere can be had without those before them.
    ///
    /// False for an origin without ranges or without a validator until all is stored: a seek
    /// forward then waits until the transfer has come there.
    public var isSeekable: Bool { source.isSeekable }

    /// The bytes that can be read without the origin now, in order and apart from each other: for the
    /// bar of a player.
    ///
    /// Never waits. What the cache does not store is not among them, also where it was read before.
    ///
    /// - Complexity: O(ranges).
    public var storedRanges: [Range<Int64>] { source.storedRanges }

    /// Where ``unsafeRead(into:deadline:)`` reads next.
    public var position: Int64 { cursor.withLock { $0 } }

    /// Why bytes could not be stored; nil if they are.
    public var storageError: CacheError? { source.storageError }

    /// What the last read failed with, for players that cannot tell a failure from the end.
    public var lastError: CacheError? { failure.withLock { $0 } }

    /// Delivered bytes that were stored when the reader was opened.
    public var bytesFromCache: Int64 { source.counts.fromCache }

    /// Delivered bytes that had to be fetched since.
    public var bytesFromOrigin: Int64 { source.counts.fromOrigin }

    // MARK: Reading

    /// Reads from `offset` on, at least one byte unless that is the end.
    ///
    /// Returns what is stored at once, also if that is less than `count`. The cursor stays.
    ///
    /// - Parameters:
    ///   - offset: the first byte wanted.
    ///   - count: the most bytes wanted, at least 1; at most 4 MiB are returned.
    ///   - deadline: how long to try; nil for ``ReaderOptions/deadline``.
    /// - Returns: the bytes; empty at the end of the representation, and only there.
    /// - Throws: what ``unsafeRead(at:into:deadline:)`` throws; `.invalidArgument` for a count below
    ///   1.
    public nonisolated(nonsending) func read(
        at offset: Int64,
        count: Int,
        deadline: Duration? = nil
    ) async throws(CacheError) -> Data {
        let buffer = try ReadBuffer(forReading: count)
        let read = Read(offset: offset, destination: ReadDestination(buffer))
        let got = try await self.read(read, deadline: deadline)
        return buffer.data(count: got)
    }

    /// Reads at the cursor and advances it by the number of bytes read.
    ///
    /// A seek during the read wins. Otherwise like ``read(at:count:deadline:)``.
    ///
    /// - Parameters:
    ///   - count: the most bytes wanted, at least 1; at most 4 MiB are returned.
    ///   - deadline: how long to try; nil for ``ReaderOptions/deadline``.
    /// - Returns: the bytes; empty at the end, and only there.
    /// - Throws: what ``read(at:count:deadline:)`` throws.
    public nonisolated(nonsending) func read(
        count: Int,
        deadline: Duration? = nil
    ) async throws(CacheError) -> Data {
        let offset = position
        let bytes = try await read(at: offset, count: count, deadline: deadline)
        advance(from: offset, by: bytes.count)
        return bytes
    }

    /// Reads from `offset` on, at least one byte unless that is the end.
    ///
    /// Returns what is stored at once, also if that is less than there is room for. The cursor
    /// stays.
    ///
    /// - Parameters:
    ///   - offset: the first byte wanted.
    ///   - buffer: where the bytes go; not to be touched until the call returns.
    ///   - deadline: how long to try; nil for ``ReaderOptions/deadline``. Failures of the network
    ///     are tried again until then.
    /// - Returns: the number of bytes; 0 at the end of the representation, and only there.
    /// - Throws: `.timedOut`, or what failed last, at the deadline; `.representationChanged`;
    ///   `.cancelled`, `.interrupted`; `.httpStatus`; `.notCached` under a policy that forbids the
    ///   origin. Later reads may be tried.
    public nonisolated(nonsending) func unsafeRead(
        at offset: Int64,
        into buffer: UnsafeMutableRawBufferPointer,
        deadline: Duration? = nil
    ) async throws(CacheError) -> Int {
        try await read(
            Read(offset: offset, destination: ReadDestination(buffer: buffer)),
            deadline: deadline
        )
    }

    /// Reads at the cursor and advances it by the number of bytes read.
    ///
    /// A seek during the read wins. Otherwise like ``unsafeRead(at:into:deadline:)``.
    ///
    /// - Parameters:
    ///   - buffer: where the bytes go.
    ///   - deadline: how long to try.
    /// - Returns: the number of bytes; 0 at the end.
    /// - Throws: what ``unsafeRead(at:into:deadline:)`` throws.
    public nonisolated(nonsending) func unsafeRead(
        into buffer: UnsafeMutableRawBufferPointer,
        deadline: Duration? = nil
    ) async throws(CacheError) -> Int {
        let offset = position
        let count = try await unsafeRead(at: offset, into: buffer, deadline: deadline)
        advance(from: offset, by: count)
        return count
    }

    func advance(from offset: Int64, by count: Int) {
        // A seek that came meanwhile wins.
        cursor.withLock { if $0 == offset { $0 += Int64(count) } }
    }

    func read(_ read: Read, deadline: Duration?) async throws(CacheError) -> Int {
        guard read.offset >= 0 else {
            throw CacheError(.invalidArgument, "cannot read at offset \(read.offset)")
        }
        guard read.destination.count > 0 else { return 0 }
        guard read.offset < ByteOffset.limit else {
            guard size == nil else { return 0 }
            throw CacheError(.rangeNotSatisfiable, "no body has a byte at \(read.offset)")
        }
        let end = time.monotonicTime().advanced(by: deadline ?? options.deadline)
        do throws(CacheError) {
            try control.check()
            var read = read
            read.control = control
            return try await source.read(read, until: end)
        } catch {
            failure.withLock { $0 = error }
            throw error
        }
    }

    // MARK: Moving

    /// Moves the cursor; sends no request and never waits.
    ///
    /// - Parameter offset: where to read next.
    /// - Throws: `.invalidArgument` before the first byte or beyond a known end.
    public func seek(to offset: Int64) throws(CacheError) {
        guard offset >= 0, offset <= size ?? .max else {
            throw CacheError(.invalidArgument, "cannot seek to \(offset)")
        }
        cursor.withLock { $0 = offset }
    }

    // MARK: Stopping

    /// Ends all reads, present and future, with `.cancelled`; returns at once.
    public func cancel() { control.cancel() }

    /// Ends all reads with `.interrupted` until ``resume()``; returns at once.
    public func interrupt() { control.interrupt() }

    /// Takes back ``interrupt()``.
    public func resume() { control.resume() }
}
