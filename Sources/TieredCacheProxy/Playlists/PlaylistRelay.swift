import HTTPCaching
import HTTPTypes
package import TieredCache

/// Gets a playlist as fresh as it must be, and makes it lead through the proxy.
package struct PlaylistRelay: Sendable {
    /// A response, and its bytes for the player.
    package struct Answer: Sendable {
        package let response: CacheResponse
        package let bytes: [UInt8]
        /// Nil where the bytes turned out to be no playlist, and are as they came.
        package let kind: PlaylistKind?
        /// Whether it is a playlist that exceeds its ``PlaylistBudget``; it has no bytes then.
        package var isRefused = false
    }

    /// Where playlists are read and rewritten: what takes long is not for the threads of tasks.
    static let threads = IOExecutor(threads: 2, name: "tc-list")

    private let cache: MediaCache
    private let prefix: String
    private let memory: PlaylistRegistry
    private let time: any TimeSource

    /// Creates a relay.
    ///
    /// - Parameters:
    ///   - cache: where playlists come from.
    ///   - prefix: what stands in front of `SCHEME/AUTHORITY/PATH` in a proxied URL.
    ///   - memory: what other playlists have said, and what these say.
    ///   - time: what measures how long an answer takes.
    package init(
        _ cache: MediaCache,
        prefix: String,
        memory: PlaylistRegistry = PlaylistRegistry(),
        time: any TimeSource = SystemTimeSource()
    ) {
        self.cache = cache
        self.prefix = prefix
        self.memory = memory
        self.time = time
    }

    /// Answers a request whose path or whose response head lets expect a playlist, or for a key.
    ///
    /// Playlists are asked for again as ``PlaylistFacts`` says, and so are keys, which may change
    /// behind one URL as well; one whose origin cannot be reached is used as it is held, for play
    /// without the network.
    ///
    /// - Parameters:
    ///   - request: for the whole of the playlist.
    ///   - limit: how long it may take.
    /// - Returns: the answer; of a status of 400 or more the origin's own body.
    /// - Throws: what ``MediaCache/response(for:)`` throws; `.invalidArgument` for a body that is
    ///   too long for a playlist; `.timedOut`.
    package func answer(
        _ request: CacheRequest,
        within limit: Duration = .seconds(30)
    ) async throws(CacheError) -> Answer {
        let start = time.monotonicTime()
        let stored: Got
        do throws(CacheError) {
            stored = try await get(request, within: limit)
        } catch {
            guard let old = try await offline(request, error) else { throw error }
            return await answer(old, request)
        }
        guard stored.response.cacheStatus.isHit, request.policy == .protocolDefault,
            let age = await maximumAge(stored, request), stored.response.age >= age
        else { return await answer(stored, request) }
        var again = request
        again.fields[.cacheControl] = "no-cache"
        do throws(CacheError) {
            let left = limit - start.duration(to: time.monotonicTime())
            let current = try await get(again, within: max(.milliseconds(1), left))
            guard current.response.status.code < 500 else { return await answer(stored, request) }
            return await answer(current, request)
        } catch {
            guard error.isWithoutAnswer else { throw error }
            return await answer(stored, request)
        }
    }

    /// The most seconds for which what is stored may be used; nil for as long as HTTP allows.
    private func maximumAge(_ stored: Got, _ request: CacheRequest) async -> Int? {
        if let kind = stored.kind {
            let facts = await Self.threads.run { PlaylistFacts(stored.original, kind: kind) }
            return facts.maximumAge(stored.response.fields)
        }
        guard memory.isKey(request.target) else { return nil }
        return PlaylistFacts.hasExplicitFreshness(stored.response.fields) ? nil : 0
    }

    /// What is stored, of any age, where the origin cannot be reached.
    private func offline(
        _ request: CacheRequest,
        _ error: CacheError
    ) async throws(CacheError) -> Got? {
        guard error.isWithoutAnswer else { return nil }
        var request = request
        request.policy = .cacheOnly
        do throws(CacheError) {
            return try await get(request)
        } catch {
            // Nothing is stored either: why the origin failed says more.
            return nil
        }
    }

    private func get(
        _ request: CacheRequest,
        within limit: Duration
    ) async throws(CacheError) -> Got {
        let got: Got?
        do {
            got = try await Deadline.run(within: limit, time) { try await get(request) }
        } catch let error as CacheError {
            throw error
        } catch {
            throw CacheError(.cancelled, "nobody waits for \(request.target.redacted)")
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
        let bytes = [UInt8](try await response.body.collect(upTo: Int(PlaylistKind.maximumSize)))
        let expected = PlaylistKind.expected(
            contentType: response.fields[.contentType],
            path: request.target.path
        )
        let kind = expected.flatMap { $0.isBeginning(of: bytes) ? $0 : nil }
        return Got(
            response: response,
            original: bytes,
            kind: response.status.code == 200 ? kind : nil
        )
    }

    private func answer(_ got: Got, _ request: CacheRequest) async -> Answer {
        guard let kind = got.kind else {
            return Answer(response: got.response, bytes: got.original, kind: nil)
        }
        let bytes = await Self.threads.run { rewritten(got, kind, request) }
        return Answer(
            response: got.response,
            bytes: bytes ?? [],
            kind: kind,
            isRefused: bytes == nil
        )
    }

    /// The playlist for the player, and what it says about others is remembered.
    private func rewritten(_ got: Got, _ kind: PlaylistKind, _ request: CacheRequest) -> [UInt8]? {
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
            memory.remember(playlist, own, at: location)
        }
        let rewriter = PlaylistRewriter(
            kind,
            prefix: prefix,
            requested: request.target,
            final: location,
            importing: imported
        )
        return rewriter.rewrite(got.original)
    }
}

extension CacheResponse {
    /// Seconds since the origin has said so; 0 for what has just come from there.
    fileprivate var age: Int { fields[.age].flatMap { Int($0) } ?? 0 }
}
