import HTTPCaching
import HTTPTypes
public import TieredCache

/// Fetches a playlist of HLS, or a manifest of DASH, with all that it refers to, so that it can be
/// played without a network.
///
/// ```swift
/// var request = CacheRequest(playlistURL)
/// request.options.insert(.pinned)
/// let outcome = await PlaylistPrefetch(cache, choice: .highest).run(request)
/// ```
public struct PlaylistPrefetch: Sendable {
    /// The number and bytes of fetched resources, and the failures.
    public struct Outcome: Sendable {
        /// The number of requested resources: media playlists, segments, keys.
        ///
        /// The playlist of the request does not count; 0 if it is neither HLS nor DASH.
        public var resources = 0
        /// The bytes of resources that were stored before.
        public var bytesFromCache: Int64 = 0
        /// The bytes of resources that were fetched.
        public var bytesFromOrigin: Int64 = 0
        /// The resources that could not be fetched or read, with the playlist of the request.
        public var failures: [Failure] = []

        /// Creates an empty outcome.
        package init() {}
    }

    /// A resource that could not be fetched or read.
    public struct Failure: Sendable {
        /// Its URL, without userinfo and query.
        public let url: String
        /// The reason.
        public let error: CacheError
    }

    /// The most resources of one playlist; more are taken for an error.
    private static let maximumResources = 100_000
    /// The number of concurrent requests; the queue of downloads has its own limit.
    private static let width = 6

    private let cache: MediaCache
    private let choice: VariantChoice
    private let time: any TimeSource

    /// Creates a prefetch.
    ///
    /// - Parameters:
    ///   - cache: the cache that stores the resources.
    ///   - choice: the variants to fetch of a presentation with several.
    ///   - time: the clock, by which cookies end.
    public init(
        _ cache: MediaCache,
        choice: VariantChoice,
        time: any TimeSource = SystemTimeSource()
    ) {
        self.cache = cache
        self.choice = choice
        self.time = time
    }

    /// Fetches a playlist, its resources, and those of the media playlists that it refers to.
    ///
    /// Six requests run at a time. Resources of the playlist's origin get the fields of the
    /// request, and all are pinned if the request is. A live playlist brings the segments that it
    /// has now. Cookies that a playlist sets go with the requests for what it names, where they are
    /// for those (RFC 6265), and are forgotten then.
    ///
    /// - Parameter request: the request of the playlist.
    /// - Returns: the outcome; a failed resource does not prevent the others from being fetched.
    public func run(_ request: CacheRequest) async -> Outcome {
        var outcome = Outcome()
        var seen: Set<String> = [request.target.string]
        var playlists = [(request, HLSVariables())]
        var jar = CookieJar()
        // Two levels: a master playlist and its media playlists.
        for _ in 0..<2 where !playlists.isEmpty {
            var further: [(CacheRequest, HLSVariables)] = []
            for (playlist, imported) in playlists {
                let found = await references(
                    of: playlist,
                    importing: imported,
                    jar: &jar,
                    outcome: &outcome
                )
                let resources = found.resources.filter { seen.insert($0.target.string).inserted }
                await fetch(resources, outcome: &outcome)
                further += found.playlists.filter { seen.insert($0.target.string).inserted }
                    .map { ($0, found.variables) }
            }
            await fetch(further.map { $0.0 }, outcome: &outcome)
            playlists = further
        }
        return outcome
    }

    /// Whether what is stored for the request is a playlist: its head says so, or its first bytes.
    package func isPlaylist(_ request: CacheRequest) async throws(CacheError) -> Bool {
        let entry = try await cache.entry(for: request)
        let (type, path) = (entry?.fields[.contentType], request.target.path)
        if PlaylistKind.expected(contentType: type, path: path) != nil { return true }
        guard entry?.length ?? .max <= PlaylistKind.maximumSize,
            PlaylistKind.isUntold(contentType: type)
        else { return false }
        var stored = request
        stored.policy = .cacheOnly
        // A look at it is no use of it.
        stored.isPrefetch = true
        stored.range = .bounded(0..<Int64(PlaylistKind.maximumBeginning))
        do throws(CacheError) {
            let bytes = try await cache.response(for: stored).body.collect()
            return PlaylistKind.of(bytes, contentType: type, path: path) != nil
        } catch {
            // It is empty, or has been removed meanwhile.
            return false
        }
    }

    /// The resolved references of a playlist.
    private struct References {
        var resources: [CacheRequest] = []
        var playlists: [CacheRequest] = []
        /// The variables that the playlists may import.
        var variables = HLSVariables()
        /// Whether there are more references than are fetched.
        var isCutShort = false

        /// Adds the cookies that are for each.
        mutating func add(_ jar: CookieJar) {
            for list in [\Self.resources, \Self.playlists] {
                for index in self[keyPath: list].indices {
                    let request = self[keyPath: list][index]
                    let cookies = jar.field(for: request.target, beside: request.fields[.cookie])
                    self[keyPath: list][index].fields[values: .cookie] = cookies.map { [$0] } ?? []
                }
            }
        }
    }

    private func references(
        of request: CacheRequest,
        importing imported: HLSVariables,
        jar: inout CookieJar,
        outcome: inout Outcome
    ) async -> References {
        do throws(CacheError) {
            let response = try await cache.response(for: request)
            jar.take(response.fields, from: response.finalTarget, at: time.wallTime())
            let bytes = [UInt8](
                try await response.body.collect(upTo: Int(PlaylistKind.maximumSize))
            )
            let location = response.finalTarget
            var found = await PlaylistRelay.threads.run { () -> References in
                if PlaylistKind.hls.isBeginning(of: bytes) {
                    return references(ofHLS: bytes, for: request, at: location, importing: imported)
                }
                guard PlaylistKind.dash.isBeginning(of: bytes) else { return References() }
                return references(ofDASH: DASHManifest(bytes), for: request, at: location)
            }
            found.add(jar)
            if found.isCutShort {
                outcome.failures.append(
                    Failure(url: request.target.redacted, error: Self.tooMany)
                )
            }
            return found
        } catch {
            outcome.failures.append(Failure(url: request.target.redacted, error: error))
            return References()
        }
    }

    private static let tooMany = CacheError(
        .invalidArgument,
        "the playlist names more than \(maximumResources) resources; only the first are fetched"
    )

    private func references(
        ofHLS bytes: [UInt8],
        for request: CacheRequest,
        at location: TargetURI,
        importing imported: HLSVariables
    ) -> References {
        let playlist = HLSPlaylist(
            bytes,
            at: location,
            importing: imported,
            atMost: Self.maximumResources
        )
        return References(
            resources: playlist.resources
                .compactMap { self.request(for: $0, relativeTo: location, like: request) },
            playlists: choice.addresses(in: playlist)
                .compactMap { self.request(for: $0, relativeTo: location, like: request) },
            variables: HLSVariables(bytes, at: location, importing: imported),
            isCutShort: playlist.isCutShort
        )
    }

    private func references(
        ofDASH manifest: DASHManifest,
        for request: CacheRequest,
        at location: TargetURI
    ) -> References {
        var result = References()
        // A limit in bytes, because addresses and bases may be as long as the manifest.
        var room = 64 << 20
        for representation in choice.representations(in: manifest) where room > 0 {
            var base = location
            do throws(TargetURIError) {
                for part in representation.bases where room > 0 {
                    room -= base.path.utf8.count + part.utf8.count
                    base = try base.resolving(reference: part)
                }
            } catch {
                // Segments below a base that is no http URL cannot be fetched.
                continue
            }
            let rest = Self.maximumResources - result.resources.count
            let addresses = representation.addresses(atMost: room > 0 ? rest : 0)
            for address in addresses where room > 0 {
                room -= base.path.utf8.count + address.utf8.count
                if let found = self.request(for: address, relativeTo: base, like: request) {
                    result.resources.append(found)
                }
            }
            if room <= 0 || addresses.count >= rest { result.isCutShort = true }
        }
        return result
    }

    /// A request like that of the playlist; nil for an address that is no http URL.
    private func request(
        for address: String,
        relativeTo base: TargetURI,
        like playlist: CacheRequest
    ) -> CacheRequest? {
        do {
            let target = try base.resolving(reference: address)
            var request = try CacheRequest(target.string)
            if target.origin == playlist.target.origin {
                request.fields = playlist.fields
                request.firstOriginFields = playlist.firstOriginFields
            }
            request.options.set(.pinned, to: playlist.isPinned)
            return request
        } catch {
            // Keys of DRM systems and inline data have other schemes.
            return nil
        }
    }

    private func fetch(_ requests: [CacheRequest], outcome: inout Outcome) async {
        let cache = cache
        outcome.resources += requests.count
        await withTaskGroup(of: (String, Result<PrefetchResult, CacheError>).self) { group in
            var rest = requests[...]
            func addNext() {
                guard let request = rest.popFirst() else { return }
                group.addTask {
                    do throws(CacheError) {
                        return (
                            request.target.redacted, .success(try await cache.prefetch(request))
                        )
                    } catch {
                        return (request.target.redacted, .failure(error))
                    }
                }
            }
            for _ in 0..<Self.width { addNext() }
            for await (url, result) in group {
                switch result {
                case .success(let result):
                    outcome.bytesFromCache += result.bytesFromCache
                    outcome.bytesFromOrigin += result.bytesFromOrigin
                case .failure(let error):
                    outcome.failures.append(Failure(url: url, error: error))
                }
                addNext()
            }
        }
    }
}
