public import FoundationEssentials
import HTTPCaching
import SystemPackage

/// A cache for the bytes of URLs: memory, then disk, then the origin.
///
/// Use one object per directory and process, and share it. All methods may be called from any
/// thread and task. Asynchronous calls do not suspend on a memory hit. No call blocks the calling
/// thread on the disk, unless its documentation says so.
///
/// ```swift
/// let cache = try MediaCache(MediaCache.Configuration())
/// let poster = try await cache.data(from: posterURL)
/// for try await chunk in try await cache.response(from: filmURL).body {
///     player.append(chunk)
/// }
/// ```
public final class MediaCache: Sendable {
    let engine: Engine
    /// What the engine answers with, at hand for hits.
    let responder: Responder
    /// The download jobs.
    let center: DownloadCenter

    /// Opens the cache.
    ///
    /// Creates the directory if necessary and locks it: a few system calls on the calling thread,
    /// without a scan. An unusable directory is no error: the cache then works without its disk
    /// tier, reports the reason as ``storageError``, and retries every ten seconds.
    ///
    /// - Parameter configuration: limits, directory and policies; the cache keeps a copy.
    /// - Throws: `.invalidArgument` for invalid values; `.localStorage` if libcrypto provides no
    ///   MD5 or no SHA-256, neither for the process nor in its default provider.
    public convenience init(
        _ configuration: MediaCache.Configuration = MediaCache.Configuration()
    ) throws(CacheError) {
        try self.init(configuration, parts: EngineParts())
    }

    /// Opens the cache on a test's own file system.
    package convenience init(
        _ configuration: MediaCache.Configuration,
        fileSystem: any FileSystem
    ) throws(CacheError) {
        var parts = EngineParts()
        parts.fileSystem = fileSystem
        try self.init(configuration, parts: parts)
    }

    /// Opens the cache on parts of a test's own.
    package init(
        _ configuration: MediaCache.Configuration,
        parts: EngineParts
    ) throws(CacheError) {
        engine = try Engine(configuration, parts: parts)
        responder = engine.responder
        center = DownloadCenter(responder: responder, configuration: configuration)
    }

    /// The reason that the disk tier cannot be read or written at present; nil if it can.
    ///
    /// `.notOwner`: another process owns the directory; this cache reads hits and stores nothing.
    public var storageError: CacheError? { engine.storage.storageError }

    /// The counters since the cache was opened.
    public var statistics: MediaCache.Statistics { engine.recorder.counters.statistics }

    /// Observes what is asked of origins; nil for nothing.
    package var observer: (any OriginObserver)? { engine.origins.observer }

    /// A stream of the events from now on, for one consumer.
    ///
    /// The stream buffers 1,024 events; a slow consumer loses the oldest ones.
    public func events() -> AsyncStream<MediaCache.Event> { engine.recorder.events.events() }

    /// Values that the application has decoded from entries, kept in the memory tier within its
    /// limit.
    ///
    /// A value is removed with its entry. Two views of one type and name share their values.
    ///
    /// - Parameters:
    ///   - type: the type of the values, such as an image or a playlist.
    ///   - name: distinguishes views of one type.
    ///   - cost: the cost of a value against the memory limit, in bytes.
    /// - Returns: the view; keep it.
    public func memoryView<Decoded: Sendable>(
        of type: Decoded.Type = Decoded.self,
        named name: String,
        cost: @escaping @Sendable (Decoded) -> Int
    ) -> TypedMemoryView<Decoded> {
        engine.storage.memory.tier.view(of: type, named: "application \(name)", cost: cost)
    }

    /// Ends all downloads, keeping what arrived, and closes directory and connections.
    ///
    /// Later calls throw `.shutDown`. Returns when all of it is done, and within five seconds in
    /// any case: what hangs in a disk or a peer by then is left behind, and the directory is given
    /// up when it ends.
    public func shutdown() async {
        await engine.shutdown(after: center.stop)
    }
}

// MARK: - Getting

extension MediaCache {
    /// The response to a request: its head now, its body as it is read.
    ///
    /// Returns as soon as the head is known. A status of 400 or above is a response, not an error.
    ///
    /// - Parameter request: the request.
    /// - Returns: the response; its body is read from the cache or arrives from the origin.
    /// - Throws: `.notCached` if the policy forbids the origin, `.originFailed`, `.timedOut`,
    ///   `.rangeNotSatisfiable`, `.invalidURL`, `.cancelled`, `.shutDown`.
    public func response(for request: CacheRequest) async throws(CacheError) -> CacheResponse {
        try await responder.response(for: request)
    }

    /// The response of a URL; see ``response(for:)``.
    public func response(from url: URL) async throws(CacheError) -> CacheResponse {
        try await response(for: CacheRequest(url))
    }

    /// The response to a request of another client, by the rules for an intermediary (RFC 9111).
    ///
    /// Any method and status; conditions and ranges are answered from what is stored. A change of
    /// the origin through here makes what is stored about it unusable. A request that the origin
    /// may have acted on is not sent again.
    ///
    /// - Parameter request: what the client sent.
    /// - Returns: what to send to the client; its body is still in the cache or on its way. Cut the
    ///   connection if reading it fails: it has begun.
    /// - Throws: `.originFailed` (502 in HTTP's words), `.timedOut` (504), `.cancelled`,
    ///   `.shutDown`.
    package func relay(_ request: RelayRequest) async throws(CacheError) -> RelayResponse {
        try await Relay(request, responder: responder).response()
    }

    /// The whole body of a response, or the requested range of it, in one piece.
    ///
    /// For bodies that fit into memory, at most 1 GiB. Restarts up to three times if the
    /// representation changes while it is fetched.
    ///
    /// - Parameter request: the request.
    /// - Returns: the bytes.
    /// - Throws: what ``response(for:)`` throws, and `.httpStatus` for a status of 400 or more.
    public func data(for request: CacheRequest) async throws(CacheError) -> Data {
        if let bytes = responder.memoryHit(request) { return bytes }
        return try await responder.data(for: request)
    }

    /// The bytes of a URL in one piece; see ``data(for:)``.
    public func data(from url: URL) async throws(CacheError) -> Data {
        try await data(for: CacheRequest(url))
    }

    /// The bytes of a body, or of a range of it, as they arrive.
    ///
    /// - Parameters:
    ///   - request: the request.
    ///   - range: the range to deliver; nil for the range of the request.
    /// - Returns: the body, readable once.
    /// - Throws: what ``response(for:)`` throws, and `.httpStatus` for a status of 400 or more.
    public func bytes(
        for request: CacheRequest,
        range: Range<Int64>? = nil
    ) async throws(CacheError) -> ResponseBody {
        try await responder.bytes(for: request, range: range)
    }

    /// The body of a fresh response in the memory tier.
    ///
    /// Synchronous: one lookup under one lock, without disk access and without a copy.
    ///
    /// - Parameter request: the request; create it once, because its initializer hashes the key.
    /// - Returns: the bytes; nil if the memory tier cannot answer, for any reason.
    public func cachedData(for request: CacheRequest) -> Data? { responder.memoryHit(request) }

    /// How long the representation of a response may be used without validation, from now on; zero
    /// or less for not at all (RFC 9111 §4.2, §5.2.2.4).
    package func timeToLive(of response: CacheResponse) -> Duration {
        let (facts, rules) = (response.head.facts, engine.storage.rules)
        guard !facts.control(rules).has(.noCache) else { return .zero }
        return FreshnessLifetime(of: facts, rules: rules).duration
            - CurrentAge.of(facts, at: engine.time.wallTime())
    }

    /// Whether the cache can answer a request in full without the origin.
    public func contains(_ request: CacheRequest) async -> Bool {
        await responder.contains(request)
    }

    /// A file that contains exactly the complete body, for a player or another program.
    ///
    /// A small body is first copied from its record into a file. The file belongs to the cache: do
    /// not change it, and pin the entry or keep its response while the path is in use.
    ///
    /// - Parameter request: the request that identifies the entry.
    /// - Returns: the URL of the file; nil if the body is not stored completely, or is not what the
    ///   origin promised or the request expects. A body that was not compared yet is compared first.
    /// - Throws: `.localStorage`, `.notOwner`; `.cancelled`.
    public func fileURL(for request: CacheRequest) async throws(CacheError) -> URL? {
        try await responder.filePath(for: request).map { URL(file: $0) }
    }

    /// Fetches and stores a body without delivering it; an unused entry is evicted first.
    ///
    /// - Parameters:
    ///   - request: the request to prefetch.
    ///   - bytes: the number of bytes from the start, nil for all. For an ISO base media file with
    ///     its `moov` box behind them, that box is fetched as well.
    /// - Returns: the number of bytes that were fetched, and that were stored before.
    /// - Throws: the errors of ``response(for:)``; `.httpStatus`; `.notStorable`, `.localStorage`
    ///   or `.notOwner` if the body cannot be stored.
    public func prefetch(
        _ request: CacheRequest,
        bytes: Int64? = nil
    ) async throws(CacheError) -> PrefetchResult {
        try await BeginningFetch(responder: responder, request: request, bytes: bytes).run()
    }
}

// MARK: - Reading

extension MediaCache {
    /// Opens a seekable reader, which fetches missing bytes as they are read.
    ///
    /// A stored and fresh entry is opened without the origin. Otherwise this waits for the head of
    /// the origin's response, within the configuration's `timeout` and `retries`.
    ///
    /// - Parameters:
    ///   - request: the request to read; its range is ignored.
    ///   - offset: the offset of the first read, and the first ``CacheReader/position``.
    ///   - end: the offset at which reading certainly ends; nil if it may end anywhere.
    ///   - options: deadline and read-ahead.
    /// - Returns: the reader.
    /// - Throws: the errors of ``response(for:)``; `.httpStatus` for a status of 400 or above.
    public func reader(
        for request: CacheRequest,
        at offset: Int64 = 0,
        expectedEnd end: Int64? = nil,
        options: ReaderOptions = ReaderOptions()
    ) async throws(CacheError) -> CacheReader {
        try await ReaderOpener(responder: responder, request: request, options: options)
            .reader(at: offset, expectedEnd: end)
    }
}

// MARK: - Downloads

extension MediaCache {
    /// An operation that the caller starts, prioritizes and cancels.
    public func operation(for request: CacheRequest) -> RequestOperation {
        RequestOperation(request, responder: responder)
    }

    /// Suspends, resumes and ends what this cache has under way with origins.
    public var transfers: TransferControl { TransferControl(transfers: engine.transfers) }

    /// Controls the transfers of requests and downloads, those that run and those that wait.
    public struct TransferControl: Sendable {
        let transfers: Transfers

        /// Starts no further transfers until ``resume()``; those that run go on.
        ///
        /// Lookups and hits are answered as ever.
        public func suspend() { transfers.suspend() }

        /// Takes back ``suspend()``.
        public func resume() { transfers.resume() }

        /// Ends all transfers, waiting and running, with `.cancelled`; what arrived stays cached.
        public func cancelAll() { transfers.cancelAll() }
    }
}

// MARK: - Keeping

extension MediaCache {
    /// Stores bytes that the application has created or received elsewhere.
    ///
    /// They are fresh for the configuration's `applicationLifetime`, or until removed or evicted.
    ///
    /// - Parameters:
    ///   - data: the complete body.
    ///   - request: identifies the entry, and says whether it is pinned.
    ///   - contentType: the `Content-Type` of later responses, nil for none.
    /// - Throws: `.localStorage`, `.notOwner`; the memory tier then stores the bytes nevertheless.
    public func store(
        _ data: Data,
        for request: CacheRequest,
        contentType: String? = nil
    ) async throws(CacheError) {
        try request.checkURL()
        try await engine.storage.store(data, for: request, contentType: contentType)
    }

    /// Removes an entry from both tiers; open readers of it can continue.
    ///
    /// - Parameter request: the request that identifies the entry.
    /// - Returns: whether there was an entry.
    /// - Throws: `.localStorage`, `.notOwner`.
    @discardableResult
    public func remove(_ request: CacheRequest) async throws(CacheError) -> Bool {
        try request.checkURL()
        return try await engine.storage.remove(request.key)
    }

    /// Protects a stored entry from eviction, or ends the protection.
    ///
    /// - Parameters:
    ///   - isPinned: whether the entry is protected.
    ///   - request: the request that identifies the entry.
    /// - Returns: whether there is an entry.
    /// - Throws: `.localStorage`, `.notOwner`.
    @discardableResult
    public func setPinned(
        _ isPinned: Bool,
        for request: CacheRequest
    ) async throws(CacheError) -> Bool {
        try request.checkURL()
        return try await engine.storage.withStore { (store) throws(CacheError) in
            try store.setPinned(isPinned, of: request.key)
        }
    }

    /// Removes all entries, including pinned ones, but no files of other programs.
    ///
    /// - Throws: `.localStorage`, `.notOwner`.
    public func removeAll() async throws(CacheError) { try await engine.storage.removeAll() }

    /// Evicts until the disk tier occupies at most `bytes`, but no pinned or open entries.
    ///
    /// - Parameter bytes: the number of bytes that may remain.
    /// - Returns: the number of bytes that the disk tier occupies now; more than `bytes` if the
    ///   remaining entries are protected.
    /// - Throws: `.localStorage`, `.notOwner`.
    @discardableResult
    public func trim(to bytes: Int64) async throws(CacheError) -> Int64 {
        try await engine.storage.trim(to: bytes)
    }

    /// All entries of the disk tier, in no order; those whose records the disk does not give are
    /// logged as errors.
    ///
    /// - Complexity: reads every record.
    /// - Returns: the entries.
    /// - Throws: `.localStorage`.
    public func entries() async throws(CacheError) -> [EntrySummary] {
        try await engine.storage.entries()
    }

    /// An entry of the disk tier.
    ///
    /// - Parameter request: the request that identifies the entry.
    /// - Returns: the entry; nil if there is none.
    /// - Throws: `.localStorage`.
    public func entry(for request: CacheRequest) async throws(CacheError) -> EntrySummary? {
        try request.checkURL()
        return try await engine.storage.summary(of: request.key)
    }

    /// Changes the limit of the disk tier while it is in use.
    ///
    /// A lower limit evicts at once. Pinned and open entries may remain above it, and nothing is
    /// stored until they fit.
    ///
    /// - Parameter bytes: the maximum number of allocated bytes; greater than 0.
    /// - Throws: `.invalidArgument`, `.localStorage`, or `.notOwner`.
    public func setDiskLimit(_ bytes: Int64) async throws(CacheError) {
        try await engine.storage.withStore { (store) throws(CacheError) in
            try store.setLimit(bytes)
        }
    }

    /// The number of entries, the bytes that the disk allocates for their files, and the limit.
    /// - Throws: `.localStorage`.
    public func usage() async throws(CacheError) -> DiskUsage {
        try await engine.storage.withStore { (store) throws(CacheError) in try store.usage() }
    }

    /// Reads every stored block and compares it with its checksum.
    ///
    /// - Parameters:
    ///   - repair: whether to discard damaged blocks, so that they are fetched again.
    ///   - report: called with each finding on a thread of the cache, also with files of other
    ///     programs, which stay untouched and uncounted.
    /// - Returns: the counts of what was verified.
    /// - Throws: `.localStorage`, and `.notOwner` for a repair.
    public func verify(
        repair: Bool = false,
        report: @Sendable (DiskFinding) -> Void = { _ in }
    ) async throws(CacheError) -> DiskVerification {
        try await engine.storage.withStore { (store) throws(CacheError) in
            try store.verify(repair: repair, report: report)
        }
    }
}
