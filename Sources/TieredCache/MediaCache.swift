public import FoundationEssentials
import SystemPackage

/// A cache for the bytes of URLs: memory, then disk, then the origin.
///
/// One object per directory and process; share it. Every method may be called from any thread and
/// any task. Asynchronous calls that a memory hit answers do not suspend; no call blocks the
/// thread that makes it on the disk, except where it says so.
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
    /// Makes the directory if need be and takes its lock, which is a few calls on the disk, on the
    /// calling thread; nothing is scanned. A directory that cannot be used is no error: the cache
    /// then works without its disk tier, says so in ``storageError``, and tries again every ten
    /// seconds.
    ///
    /// - Parameter configuration: limits, directory and policies; a copy is kept.
    /// - Throws: `.invalidArgument` for limits that make no sense; `.localStorage` on a machine
    ///   whose libcrypto has no MD5 or no SHA-256, neither for the process nor in its default
    ///   provider.
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

    /// Why the disk tier cannot be used or written at present; nil if it can.
    ///
    /// `.notOwner`: another process owns the directory, so hits are read and nothing is stored.
    public var storageError: CacheError? { engine.storage.storageError }

    /// What the cache has done since it was opened.
    public var statistics: MediaCache.Statistics { engine.recorder.counters.statistics }

    /// A stream of what happens from now on, for one consumer.
    ///
    /// A consumer that does not keep up loses the oldest of 1,024 waiting events.
    public func events() -> AsyncStream<MediaCache.Event> { engine.recorder.events.events() }

    /// Values that the application has decoded from entries, in the memory tier, under its limit.
    ///
    /// They leave with the entry that they were decoded from. Two views of one type and name see
    /// the same values.
    ///
    /// - Parameters:
    ///   - type: the type of the values, such as an image or a playlist.
    ///   - name: tells views of one type apart.
    ///   - cost: what a value counts against the memory limit, in bytes.
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
    /// The answer to a request: its head now, its body as it is read.
    ///
    /// Returns as soon as the head is known. A status of 400 or more is an answer.
    ///
    /// - Parameter request: what is wanted.
    /// - Returns: the answer; its body is still in the cache or on its way.
    /// - Throws: `.notCached` where the policy forbids the origin, `.originFailed`, `.timedOut`,
    ///   `.rangeNotSatisfiable`, `.cancelled`.
    public func response(for request: CacheRequest) async throws(CacheError) -> CacheResponse {
        try await responder.response(for: request)
    }

    /// The answer of a URL; see ``response(for:)``.
    public func response(from url: URL) async throws(CacheError) -> CacheResponse {
        try await response(for: CacheRequest(url))
    }

    /// The answer to a request of another client, by the rules for an intermediary (RFC 9111).
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

    /// The bytes of a whole answer, or of the range that the request names, in one piece.
    ///
    /// For bodies that fit into memory: at most 1 GiB. Starts again, up to three times, when the
    /// representation changes on the way.
    ///
    /// - Parameter request: what is wanted.
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

    /// The bytes of a URL, or of a part of it, as they arrive.
    ///
    /// - Parameters:
    ///   - request: what is wanted.
    ///   - range: which bytes; nil for what the request says.
    /// - Returns: the body, to be read once.
    /// - Throws: what ``response(for:)`` throws, and `.httpStatus` for a status of 400 or more.
    public func bytes(
        for request: CacheRequest,
        range: Range<Int64>? = nil
    ) async throws(CacheError) -> ResponseBody {
        try await responder.bytes(for: request, range: range)
    }

    /// The bytes under a key if the memory tier holds them and they are fresh.
    ///
    /// Synchronous: one lookup, one lock, no disk, no copy.
    ///
    /// - Parameter request: what is wanted; make it once, for its key is hashed when it is made.
    /// - Returns: the bytes, or nil, whatever the reason.
    public func cachedData(for request: CacheRequest) -> Data? { responder.memoryHit(request) }

    /// Whether everything that a request wants is stored and may be used without the origin.
    public func contains(_ request: CacheRequest) async -> Bool {
        await responder.contains(request)
    }

    /// A file with exactly the complete body, for a player or another program.
    ///
    /// A small body that is kept inside its record is written out first. The file belongs to the
    /// cache: do not change it, and pin the entry or hold its response while the path is in use.
    ///
    /// - Parameter request: whose body.
    /// - Returns: the file, or nil if the body is not stored completely.
    /// - Throws: `.localStorage`, `.notOwner`.
    public func fileURL(for request: CacheRequest) async throws(CacheError) -> URL? {
        try request.checkURL()
        return try await engine.storage.withStore { (store) throws(CacheError) in
            try store.bodyPath(for: request.key).map { URL(filePath: $0.string) }
        }
    }

    /// Fetches and stores without delivering; the entry is the first to go until it is used.
    ///
    /// - Parameters:
    ///   - request: what will be wanted.
    ///   - bytes: how much of the head to take, nil for all of it. Where it is an ISO base media
    ///     file whose `moov` lies behind that, `moov` is fetched too.
    /// - Returns: what was fetched and what was there.
    /// - Throws: what ``response(for:)`` throws; `.httpStatus`; `.notStorable`, `.localStorage` or
    ///   `.notOwner` where it cannot be stored.
    public func prefetch(
        _ request: CacheRequest,
        bytes: Int64? = nil
    ) async throws(CacheError) -> PrefetchResult {
        try await BeginningFetch(responder: responder, request: request, bytes: bytes).run()
    }
}

// MARK: - Reading

extension MediaCache {
    /// Opens a seekable reader; what is missing is fetched as it is read.
    ///
    /// From the cache it asks nobody; otherwise it waits for the origin's head, no longer than the
    /// configuration's `timeout` and `retries`.
    ///
    /// - Parameters:
    ///   - request: what to read; its range plays no role.
    ///   - offset: where the first read will be.
    ///   - end: where reading will stop, if that is certain; nil if it may stop at any time.
    ///   - options: deadline and read-ahead.
    /// - Returns: the reader.
    /// - Throws: what ``response(for:)`` throws; `.httpStatus` for a status of 400 or more.
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
    /// A request to be started, made more or less urgent, or cancelled by hand.
    public func operation(for request: CacheRequest) -> RequestOperation {
        RequestOperation(responder.operation(for: request))
    }

    /// Suspends, resumes and ends what this cache has under way with origins.
    public var transfers: TransferControl { TransferControl(transfers: engine.transfers) }

    /// What this cache has under way with origins, requests and downloads alike.
    public struct TransferControl: Sendable {
        let transfers: Transfers

        /// Starts no further transfers until ``resume()``; those that run go on.
        ///
        /// Lookups and hits are answered as ever.
        public func suspend() { transfers.forEachQueue { $0.suspend() } }

        /// Takes back ``suspend()``.
        public func resume() { transfers.forEachQueue { $0.resume() } }

        /// Ends all transfers, waiting and running, with `.cancelled`; what arrived stays cached.
        public func cancelAll() { transfers.forEachQueue { $0.cancelAll() } }
    }
}

// MARK: - Keeping

extension MediaCache {
    /// Stores bytes that the application has made or got elsewhere.
    ///
    /// Fresh for the configuration's `applicationLifetime`, or until removed or evicted.
    ///
    /// - Parameters:
    ///   - data: the whole body.
    ///   - request: under which key, and whether pinned.
    ///   - contentType: the `Content-Type` to answer with, nil for none.
    /// - Throws: `.localStorage`, `.notOwner`; the memory tier then has it all the same.
    public func store(
        _ data: Data,
        for request: CacheRequest,
        contentType: String? = nil
    ) async throws(CacheError) {
        try request.checkURL()
        try await engine.storage.store(data, for: request, contentType: contentType)
    }

    /// Removes an entry from both tiers; who reads it goes on reading.
    ///
    /// - Parameter request: whose entry.
    /// - Returns: whether there was one.
    /// - Throws: `.localStorage`, `.notOwner`.
    @discardableResult
    public func remove(_ request: CacheRequest) async throws(CacheError) -> Bool {
        try request.checkURL()
        return try await engine.storage.remove(request.key)
    }

    /// Protects an entry that is stored from eviction, or ends that.
    ///
    /// - Parameters:
    ///   - isPinned: whether eviction is to spare it.
    ///   - request: whose entry.
    /// - Returns: whether there is one.
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

    /// Removes all entries, pinned ones too; files that are not the cache's stay.
    ///
    /// - Throws: `.localStorage`, `.notOwner`.
    public func removeAll() async throws(CacheError) { try await engine.storage.removeAll() }

    /// Evicts until the disk tier occupies at most `bytes`; pinned entries and those in use stay.
    ///
    /// - Parameter bytes: how much may stay.
    /// - Returns: what the disk tier occupies now; more than `bytes` where the rest may not go.
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

    /// One entry of the disk tier.
    ///
    /// - Parameter request: whose entry.
    /// - Returns: the entry, or nil.
    /// - Throws: `.localStorage`.
    public func entry(for request: CacheRequest) async throws(CacheError) -> EntrySummary? {
        try request.checkURL()
        return try await engine.storage.summary(of: request.key)
    }

    /// Changes the limit of the disk tier while it is in use.
    ///
    /// A lower one is made true at once, as far as entries may leave: what is pinned or being read
    /// may stay above it, and nothing is stored until it fits.
    ///
    /// - Parameter bytes: the most that files may be allocated; greater than 0.
    /// - Throws: `.invalidArgument`, `.localStorage`, or `.notOwner`.
    public func setDiskLimit(_ bytes: Int64) async throws(CacheError) {
        try await engine.storage.withStore { (store) throws(CacheError) in
            try store.setLimit(bytes)
        }
    }

    /// What the disk tier holds.
    ///
    /// - Returns: entries, bytes as the disk allocates them for files, and the limit.
    /// - Throws: `.localStorage`.
    public func usage() async throws(CacheError) -> DiskUsage {
        try await engine.storage.withStore { (store) throws(CacheError) in try store.usage() }
    }

    /// Reads every block that is stored and compares it with its checksum.
    ///
    /// - Parameters:
    ///   - repair: whether to give up what is damaged, so that it is fetched again.
    ///   - report: gets each finding as it is made, on a thread of the cache's; also files that are
    ///     not the cache's, which are left alone and not counted.
    /// - Returns: what was found.
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
