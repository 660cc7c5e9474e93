import HTTPCaching
package import TieredCache

/// Fetches all that a playlist refers to, so that it can be played without the network.
package struct PlaylistPrefetch: Sendable {
    /// How much was fetched, and what failed.
    package struct Outcome: Sendable {
        /// Playlists, segments, keys: everything that was asked for.
        package var resources = 0
        package var bytesFromCache: Int64 = 0
        package var bytesFromOrigin: Int64 = 0
        package var failures: [(url: String, error: CacheError)] = []

        /// Nothing was asked for.
        package init() {}
    }

    /// More than this in one presentation is taken for a mistake.
    private static let maximumResources = 100_000
    /// Requests made at the same time; the queue of downloads has its own limit.
    private static let width = 6

    private let cache: MediaCache
    private let choice: VariantChoice

    /// Creates a prefetch.
    ///
    /// - Parameters:
    ///   - cache: where all of it goes.
    ///   - choice: which variants of a master playlist are wanted.
    package init(_ cache: MediaCache, choice: VariantChoice) {
        self.cache = cache
        self.choice = choice
    }

    /// Fetches what the playlist of `request`, which is stored, refers to, and what that refers to.
    ///
    /// - Parameter request: the playlist.
    /// - Returns: what was done; a resource that failed does not keep the others from being
    ///   fetched.
    package func run(_ request: CacheRequest) async -> Outcome {
        var outcome = Outcome()
        var seen: Set<String> = [request.target.string]
        var playlists = [(request, HLSVariables())]
        // A master playlist, its media playlists, and no deeper.
        for _ in 0..<2 where !playlists.isEmpty {
            var further: [(CacheRequest, HLSVariables)] = []
            for (playlist, imported) in playlists {
                let found = await references(of: playlist, importing: imported, &outcome)
                let resources = found.resources.filter { seen.insert($0.target.string).inserted }
                await fetch(resources, &outcome)
                further += found.playlists.filter { seen.insert($0.target.string).inserted }
                    .map { ($0, found.variables) }
            }
            await fetch(further.map { $0.0 }, &outcome)
            playlists = further
        }
        return outcome
    }

    /// What a playlist refers to, resolved.
    private struct References {
        var resources: [CacheRequest] = []
        var playlists: [CacheRequest] = []
        /// What the playlists may import.
        var variables = HLSVariables()
        /// Whether there is more than is fetched.
        var isCutShort = false
    }

    private func references(
        of request: CacheRequest,
        importing imported: HLSVariables,
        _ outcome: inout Outcome
    ) async -> References {
        do throws(CacheError) {
            let response = try await cache.response(for: request)
            let bytes = [UInt8](
                try await response.body.collect(upTo: Int(PlaylistKind.maximumSize))
            )
            let location = response.finalTarget
            let found = await PlaylistRelay.threads.run { () -> References in
                if PlaylistKind.hls.isBeginning(of: bytes) {
                    return references(ofHLS: bytes, request, location, importing: imported)
                }
                guard PlaylistKind.dash.isBeginning(of: bytes) else { return References() }
                return references(ofDASH: DASHManifest(bytes), request, location)
            }
            if found.isCutShort {
                outcome.failures.append((request.target.redacted, Self.tooMany))
            }
            return found
        } catch {
            outcome.failures.append((request.target.redacted, error))
            return References()
        }
    }

    private static let tooMany = CacheError(
        .invalidArgument,
        "it names more than \(maximumResources) resources; only the first of them are fetched"
    )

    private func references(
        ofHLS bytes: [UInt8],
        _ request: CacheRequest,
        _ location: TargetURI,
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
                .compactMap { self.request($0, location, like: request) },
            playlists: choice.addresses(in: playlist)
                .compactMap { self.request($0, location, like: request) },
            variables: HLSVariables(bytes, at: location, importing: imported),
            isCutShort: playlist.isCutShort
        )
    }

    private func references(
        ofDASH manifest: DASHManifest,
        _ request: CacheRequest,
        _ location: TargetURI
    ) -> References {
        var result = References()
        // In bytes: addresses may be as long as the manifest, and so may what they are relative to.
        var room = 64 << 20
        for representation in choice.representations(in: manifest) where room > 0 {
            var base = location
            do throws(TargetURIError) {
                for part in representation.bases where room > 0 {
                    room -= base.path.utf8.count + part.utf8.count
                    base = try base.resolving(reference: part)
                }
            } catch {
                // A base that is no URL of ours has no segments of ours either.
                continue
            }
            let rest = Self.maximumResources - result.resources.count
            let addresses = representation.addresses(atMost: room > 0 ? rest : 0)
            for address in addresses where room > 0 {
                room -= base.path.utf8.count + address.utf8.count
                if let found = self.request(address, base, like: request) {
                    result.resources.append(found)
                }
            }
            if room <= 0 || addresses.count >= rest { result.isCutShort = true }
        }
        return result
    }

    /// A request like that for the playlist; nil for an address that is no URL of ours.
    private func request(
        _ address: String,
        _ base: TargetURI,
        like playlist: CacheRequest
    ) -> CacheRequest? {
        do {
            let target = try base.resolving(reference: address)
            var request = try CacheRequest(target.string)
            if target.origin == playlist.target.origin { request.fields = playlist.fields }
            request.options.set(.pinned, to: playlist.isPinned)
            return request
        } catch {
            // Keys of rights management and inline data have other schemes.
            return nil
        }
    }

    private func fetch(_ requests: [CacheRequest], _ outcome: inout Outcome) async {
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
                    outcome.failures.append((url, error))
                }
                addNext()
            }
        }
    }
}
