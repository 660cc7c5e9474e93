import FoundationEssentials
import HTTPCaching
public import TieredCache

/// Pictures of URLs: decoded ones from memory, others by the cache, each fetched and decoded once
/// for all that wait for it.
///
/// ```swift
/// let pictures = ImagePipeline(cache: cache, decoder: MyDecoder())
/// let poster = try ImageRequest(url, size: ImageSize(width: 320, height: 180))
/// show(try await pictures.picture(for: poster))
/// ```
///
/// Decoded pictures are within the cache's memory limit, in the order of their use with all else;
/// memory pressure shrinks them with it. Each size is kept for itself. May be used from any thread.
public final class ImagePipeline<Decoder: ImageDecoding>: Sendable {
    /// What the decoder makes.
    public typealias Picture = Decoder.Picture

    /// How a pipeline works.
    public struct Options: Sendable {
        /// How many pictures are decoded at once; 2 by default.
        public var maximumDecodes = 2
        /// The largest body that is decoded, in bytes; 64 MiB by default.
        public var maximumBytes = 64 << 20
        /// How long a decoded picture is shown although its body is not fresh any more; a minute by
        /// default, as a browser keeps the pictures of a page.
        ///
        /// Zero asks each time.
        public var minimumLifetime = Duration.seconds(60)
        /// Tells the decoded pictures of several pipelines of one cache apart.
        public var name = "images"

        /// Creates the defaults.
        public init() {}
    }

    /// A picture that some wait for.
    ///
    /// States: waited for → ended, when its picture or an error is there; or abandoned, when the
    /// last one has left. In both it leaves the table.
    private struct Load {
        let operation: RequestOperation
        var task: Task<Void, Never>?
        var waiters: [Int: CheckedContinuation<Picture, any Error>] = [:]
    }

    private struct State {
        var views: [ImageSize?: TypedMemoryView<Picture>] = [:]
        var loads: [ImageRequest.Identity: Load] = [:]
        var lastWaiter = 0
        var prefetches: [ImageRequest.Identity: Task<Void, Never>] = [:]
        var statistics = ImageStatistics()
    }

    private let cache: MediaCache
    private let decoder: Decoder
    private let options: Options
    private let threads: IOExecutor
    private let state = Guarded(State())

    /// Creates a pipeline; keep it.
    ///
    /// - Parameters:
    ///   - cache: the cache that the bytes come from.
    ///   - decoder: makes the pictures.
    ///   - options: how it works.
    public init(cache: MediaCache, decoder: Decoder, options: Options = Options()) {
        self.cache = cache
        self.decoder = decoder
        self.options = options
        threads = IOExecutor(threads: max(1, options.maximumDecodes), name: "tc-image")
    }

    /// What it has done.
    public var statistics: ImageStatistics { state.withLock { $0.statistics } }

    // MARK: Getting

    /// The picture, if it is in memory.
    ///
    /// Does not wait, so that a view may call it.
    public func cachedPicture(for request: ImageRequest) -> Picture? {
        let picture = view(of: request.size).value(forKey: request.bytes.key)
        if picture != nil { state.withLock { $0.statistics.memoryHits += 1 } }
        return picture
    }

    /// The picture.
    ///
    /// A task that is cancelled, since its cell has left the screen, returns at once; when it was
    /// the last one that waited, the download ends, and what has arrived stays in the cache. Of
    /// several requests for one picture the most urgent decides about the priority.
    ///
    /// - Parameter request: the picture.
    /// - Returns: the picture.
    /// - Throws: `CacheError`: what `MediaCache.data(for:)` throws; what the decoder throws;
    ///   `CancellationError`.
    public func picture(for request: ImageRequest) async throws -> Picture {
        if let picture = cachedPicture(for: request) { return picture }
        state.withLock { $0.statistics.memoryMisses += 1 }
        return try await load(request)
    }

    private func load(_ request: ImageRequest) async throws -> Picture {
        let waiter = state.withLock { state in
            state.lastWaiter += 1
            return state.lastWaiter
        }
        return try await withTaskCancellationHandler {
            try await withCheckedThrowingContinuation { join(request, waiter, $0) }
        } onCancel: {
            leave(request.identity, waiter)
        }
    }

    private func join(
        _ request: ImageRequest,
        _ waiter: Int,
        _ continuation: CheckedContinuation<Picture, any Error>
    ) {
        let operation = cache.operation(for: request.bytes)
        let joined = state.withLock { state -> RequestOperation? in
            // Looked at under the lock: whoever cancels comes behind it.
            guard !Task.isCancelled else { return nil }
            var load = state.loads[request.identity] ?? Load(operation: operation)
            load.waiters[waiter] = continuation
            if load.task == nil {
                load.task = Task { [weak self] in await self?.run(request, operation) }
            }
            state.loads[request.identity] = load
            return load.operation
        }
        guard let joined else { return continuation.resume(throwing: CancellationError()) }
        if joined.priority < request.bytes.priority { joined.priority = request.bytes.priority }
    }

    private func leave(_ identity: ImageRequest.Identity, _ waiter: Int) {
        let (continuation, abandoned) = state.withLock { state in
            let continuation = state.loads[identity]?.waiters.removeValue(forKey: waiter)
            guard continuation != nil, state.loads[identity]?.waiters.isEmpty == true else {
                return (continuation, Task<Void, Never>?.none)
            }
            state.statistics.abandoned += 1
            return (continuation, state.loads.removeValue(forKey: identity)?.task)
        }
        abandoned?.cancel()
        continuation?.resume(throwing: CancellationError())
    }

    private func run(_ request: ImageRequest, _ operation: RequestOperation) async {
        let result: Result<Picture, any Error>
        do {
            result = .success(try await fetch(request, operation))
        } catch {
            result = .failure(error)
        }
        let waiters = state.withLock { state -> [CheckedContinuation<Picture, any Error>] in
            // An abandoned one may have been begun anew meanwhile.
            guard state.loads[request.identity]?.operation === operation else { return [] }
            if case .failure = result { state.statistics.failed += 1 }
            let ended = state.loads.removeValue(forKey: request.identity)
            return ended.map { Array($0.waiters.values) } ?? []
        }
        for waiter in waiters { waiter.resume(with: result) }
    }

    // MARK: One picture

    private func fetch(
        _ request: ImageRequest,
        _ operation: RequestOperation
    ) async throws -> Picture {
        let (response, bytes) = try await body(of: request.bytes, operation)
        let (decoder, size) = (decoder, request.size)
        let picture = try await threads.run {
            // It may have waited for its turn, and nobody for it any more.
            try Task.checkCancellation()
            return try decoder.picture(of: bytes, size: size)
        }
        keep(picture, of: response, for: request)
        // Behind it: who sees the count finds the picture.
        state.withLock { state in
            state.statistics.decoded += 1
            if response.cacheStatus.isHit {
                state.statistics.bodiesFromCache += 1
            } else {
                state.statistics.bodiesFromOrigin += 1
            }
        }
        return picture
    }

    /// The whole body; read anew where the representation changes on the way.
    private func body(
        of request: CacheRequest,
        _ operation: RequestOperation
    ) async throws(CacheError) -> (CacheResponse, Data) {
        var (operation, changes) = (operation, 0)
        while true {
            do throws(CacheError) {
                let response = try await operation.successfulResponse(for: request)
                return (response, try await response.body.collect(upTo: options.maximumBytes))
            } catch {
                changes += 1
                guard error.code == .representationChanged, changes <= 3 else { throw error }
                operation = cache.operation(for: request)
            }
        }
    }

    private func keep(_ picture: Picture, of response: CacheResponse, for request: ImageRequest) {
        // What must not be stored must not be shown twice either (RFC 9111 §5.2.2.5).
        guard response.mayKeepInMemory else { return }
        let lifetime = max(cache.timeToLive(of: response), options.minimumLifetime)
        guard lifetime > .zero else { return }
        view(of: request.size).insert(
            picture,
            forKey: request.bytes.key,
            expiresAfter: lifetime
        )
    }

    private func view(of size: ImageSize?) -> TypedMemoryView<Picture> {
        state.withLock { state in
            if let view = state.views[size] { return view }
            let decoder = decoder
            let view = cache.memoryView(
                of: Picture.self,
                named: "\(options.name) \(size.map(\.description) ?? "")"
            ) { decoder.cost(of: $0) }
            state.views[size] = view
            return view
        }
    }

    // MARK: Lists

    /// Fetches and decodes pictures that will probably be shown next, as those below the screen of
    /// a list; behind all that is shown.
    ///
    /// The list replaces the one before: what is not in it any more is abandoned, unless somebody
    /// waits for it. So begin it with what is shown now. An empty list ends all.
    ///
    /// - Parameter requests: the pictures, the most probable first.
    public func prefetch(_ requests: [ImageRequest]) {
        let wanted = Dictionary(requests.map { ($0.identity, $0) }) { first, _ in first }
        let left = state.withLock { state in
            let left = state.prefetches.filter { wanted[$0.key] == nil }
            for identity in left.keys { state.prefetches[identity] = nil }
            for request in requests where state.prefetches[request.identity] == nil {
                state.prefetches[request.identity] = Task(priority: .utility) { [weak self] in
                    await self?.prefetch(request)
                }
            }
            return left
        }
        for task in left.values { task.cancel() }
    }

    private func prefetch(_ request: ImageRequest) async {
        guard !view(of: request.size).contains(request.bytes.key) else { return }
        var request = request
        request.bytes.priority = .prefetch
        do {
            _ = try await load(request)
        } catch {
            // Whoever shows it gets the error.
        }
    }
}
