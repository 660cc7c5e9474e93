import HTTPCaching
import HTTPTypes
package import TieredCache

/// Gets a playlist, revalidated as needed, and rewrites its URLs to the proxy.
package struct PlaylistRelay: Sendable {
    /// A response, and the bytes for the player.
    package struct Response: Sendable {
        package let response: CacheResponse
        package let bytes: [UInt8]
        /// The kind; nil if the bytes are no playlist and unchanged.
        package let kind: PlaylistKind?
        /// Whether the playlist exceeds its ``PlaylistBudget``; ``bytes`` is empty then.
        package var isRefused = false
    }

    /// The threads that read and rewrite playlists and list entries, because long work must not
    /// block an event loop or the cooperative pool.
    static let threads = IOExecutor(threads: 2, name: "tc-list")

    private let cache: MediaCache
    private let prefix: String
    private let rules: HostRules
    private let memory: PlaylistRegistry
    private let time: any TimeSource

    /// Creates a relay.
    ///
    /// - Parameters:
    ///   - cache: the cache.
    ///   - prefix: the prefix of `SCHEME/AUTHORITY/PATH` in proxied URLs.
    ///   - rules: the rules for hosts; URLs of excluded ones do not lead through the proxy.
    ///   - memory: the registry of facts from playlists; read and updated.
    ///   - time: the clock for time limits.
    package init(
        _ cache: MediaCache,
        prefix: String,
        rules: HostRules = HostRules(),
        memory: PlaylistRegistry = PlaylistRegistry(),
        time: any TimeSource = SystemTimeSource()
    ) {
        self.cache = cache
        self.prefix = prefix
        self.rules = rules
        self.memory = memory
        self.time = time
    }

    /// Answers a request for a presumed playlist or key.
    ///
    /// Playlists are revalidated as ``PlaylistFacts`` requires, and so are keys, which may change
    /// under one URL. If the origin cannot be reached, the stored response is used, so that
    /// playback works without a network.
    ///
    /// - Parameters:
    ///   - request: the request for the whole playlist.
    ///   - limit: the time limit.
    /// - Returns: the response; for a status of 400 or more with the unchanged body of the origin.
    /// - Throws: the errors of ``MediaCache/response(for:)``; `.invalidArgument` if the body is too
    ///   long for a playlist; `.timedOut`.
    package func answer(
        _ request: CacheRequest,
        within limit: Duration = .seconds(30)
    ) async throws(CacheError) -> Response {
        let start = time.monotonicTime()
        let stored: Got
        do throws(CacheError) {
            stored = try await get(request, within: limit)
        } catch {
            guard let old = try await offline(for: request, after: error) else { throw error }
            return await answer(with: old, to: request)
        }
        var again = request
        if stored.kind != nil, isForAnother(stored.response, request) {
            again.policy = .reload
        } else {
            guard stored.response.cacheStatus.isHit, request.policy == .protocolDefault,
                let age = await maximumAge(of: stored, for: request), stored.response.age >= age
            else { return await answer(with: stored, to: request) }
            again.fields[.cacheControl] = "no-cache"
        }
        do throws(CacheError) {
            let left = limit - start.duration(to: time.monotonicTime())
            let current = try await get(again, within: max(.milliseconds(1), left))
            // RFC 9111 §4.2.4: as good as no connection, and the film goes on.
            guard current.response.status.code < 500 else {
                return await answer(with: stored, to: request)
            }
            return await answer(with: current, to: request)
        } catch {
            guard error.isWithoutResponse else { throw error }
            return await answer(with: stored, to: request)
        }
    }

    /// Whether the cookies of the response are another player's, and this one has none yet.
    private func isForAnother(_ response: CacheResponse, _ request: CacheRequest) -> Bool {
        request.policy == .protocolDefault && response.fields.contains(.setCookie)
            && !response.isForThisRequest && !request.fields.contains(.cookie)
    }

    /// The most seconds for which the stored response may be used; nil for as long as HTTP allows.
    private func maximumAge(of stored: Got, for request: CacheRequest) async -> Int? {
        if let kind = stored.kind {
            let facts = await Self.threads.run { PlaylistFacts(stored.original, kind: kind) }
            return facts.maximumAge(stored.response.fields)
        }
        guard memory.isKey(request.target) else { return nil }
        return PlaylistFacts.hasExplicitFreshness(stored.response.fields) ? nil : 0
    }

    /// The stored response of any age, if the origin cannot be reached.
    private func offline(
        for request: CacheRequest,
        after error: CacheError
    ) async throws(CacheError) -> Got? {
        guard error.isWithoutResponse else { return nil }
        var request = request
        request.policy = .cacheOnly
        do throws(CacheError) {
            return try await get(request)
        } catch {
            // Nothing is stored: the error of the origin is more informative.
            return nil
        }
    }

    private func get(
        _ request: CacheRequest,
        within limit: Duration
    ) async throws(CacheError) -> Got {
        let got: Got?
        do {
            got = try await Deadline.run(within: limit, time: time) { try await get(request) }
        } catch let error as CacheError {
            throw error
        } catch {
            throw CacheError(.cancelled, "the request for \(request.target.redacted) was cancelled")
        }
        guard let got else {
            throw CacheError(.timedOut, "\(request.target.redacted) took longer than \(limit)")
        }
        return got
    }

    private struct Got: Sendable {
        let response: CacheResponse
        let original: [UInt8]
        let kind: PlaylistKind?
    }

    private func get(_ request: CacheRequest) async throws(CacheError) -> Got {
        let response = try await cache.response(for: request)
        let body = try await response.body.collect(upTo: Int(PlaylistKind.maximumSize))
        return await Self.threads.run {
            let bytes = [UInt8](body)
            let kind = PlaylistKind.of(
                bytes,
                contentType: response.fields[.contentType],
                path: request.target.path
            )
            return Got(
                response: response,
                original: bytes,
                kind: response.status.code == 200 ? kind : nil
            )
        }
    }

    private func answer(with got: Got, to request: CacheRequest) async -> Response {
        guard let kind = got.kind else {
            return Response(response: got.response, bytes: got.original, kind: nil)
        }
        let bytes = await Self.threads.run { rewritten(got, kind: kind, for: request) }
        return Response(
            response: got.response,
            bytes: bytes ?? [],
            kind: kind,
            isRefused: bytes == nil
        )
    }

    /// Rewrites the playlist for the player, and records its references.
    private func rewritten(_ got: Got, kind: PlaylistKind, for request: CacheRequest) -> [UInt8]? {
        let location = got.response.finalTarget
        let imported = memory.variables(for: request.target)
        if kind == .hls {
            let own = HLSVariables(got.original, at: location, importing: imported)
            let playlist = HLSPlaylist(
                got.original,
                at: location,
                importing: imported,
                atMost: PlaylistRegistry.maximumCount
            )
            memory.remember(playlist, variables: own, at: location)
        }
        let rewriter = PlaylistRewriter(
            kind,
            prefix: prefix,
            requested: request.target,
            final: location,
            rules: rules,
            importing: imported
        )
        return rewriter.rewrite(got.original)
    }
}

extension CacheResponse {
    /// The value of `Age` in seconds; 0 for a response that has just arrived from the origin.
    fileprivate var age: Int { fields[.age].flatMap { Int($0) } ?? 0 }
}
