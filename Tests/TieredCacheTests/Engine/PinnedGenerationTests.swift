import FoundationEssentials
import HTTPCaching
import HTTPTypes
import TestParts
import Testing
import TieredCacheTesting

@testable import TieredCache

/// Invariant 5: a pin belongs to the key, and a complete pinned body stays until the new one is.
@Suite(.tags(.realTime), .timeLimit(.minutes(10)))
struct PinnedGenerationTests {
    static let length: Int64 = 3_000_000

    /// A film that is complete and pinned, stale at once unless `control` says otherwise.
    static func run(
        _ control: String = "max-age=0",
        _ body: (CacheFixture, CacheRequest, OriginResource) async throws -> Void
    ) async throws {
        let film = OriginResource.generated(length: length, cacheControl: control)
        try await CacheFixture.run { fixture in
            fixture.origin.serve("/film", film)
            var request = try fixture.request("/film")
            request.options.insert(.pinned)
            let pinned = request
            try await fixture.withCache { cache in
                let bytes = try await cache.response(for: pinned).read().bytes
                #expect(firstDifference(bytes, film.allBytes) == nil)
            }
            try await expect(1, fixture, film)
            try await body(fixture, fixture.request("/film"), film)
        }
    }

    /// What another process finds under the key without asking the origin.
    static func expect(
        _ version: Int,
        _ fixture: CacheFixture,
        _ film: OriginResource,
        location: SourceLocation = #_sourceLocation
    ) async throws {
        try await fixture.withCache { cache in
            let request = try fixture.request("/film")
            try await expect(version, cache, request, film, location: location)
            _ = try await cache.trim(to: 0)
            try await expect(version, cache, request, film, location: location)
            let verified = try await cache.verify(repair: false)
            #expect(verified.damaged == 0, sourceLocation: location)
        }
    }

    /// What a cache gives under the key without asking the origin.
    static func expect(
        _ version: Int,
        _ cache: MediaCache,
        _ request: CacheRequest,
        _ film: OriginResource,
        location: SourceLocation = #_sourceLocation
    ) async throws {
        var request = request
        let entry = try await cache.entry(for: request)
        #expect(entry?.isPinned == true && entry?.isComplete == true, sourceLocation: location)
        request.policy = .cacheOnly
        let found = try await bytes(of: request, cache)
        let right = try #require(film.bodyOfVersion(version)).bytes()
        let isRight = found == right
        #expect(isRight, "\(found.count) bytes", sourceLocation: location)
    }

    /// Nothing where the cache alone cannot answer.
    private static func bytes(
        of request: CacheRequest,
        _ cache: MediaCache
    ) async throws -> [UInt8] {
        do {
            return [UInt8](try await cache.response(for: request).read().bytes)
        } catch let error as CacheError where error.code == .notCached {
            return []
        }
    }

    // MARK: The new one comes as a whole

    @Test("A new generation takes the pin over", arguments: ["max-age=0", "max-age=600"])
    func inherited(_ control: String) async throws {
        try await Self.run(control) { fixture, request, film in
            fixture.origin.update("/film") { $0.version = 2 }
            var request = request
            if control != "max-age=0" { request.policy = .reload }
            let asked = request
            try await fixture.withCache { cache in
                let bytes = try await cache.response(for: asked).read().bytes
                let new = try #require(film.bodyOfVersion(2)).bytes()
                #expect(firstDifference([UInt8](bytes), new) == nil)
                // A client that has read all of it finds it, also at once.
                try await Self.expect(2, cache, fixture.request("/film"), film)
            }
            try await Self.expect(2, fixture, film)
        }
    }

    @Test("So it does for another client")
    func relayed() async throws {
        try await Self.run { fixture, request, film in
            fixture.origin.update("/film") { $0.version = 2 }
            try await fixture.withCache { cache in
                _ = try await cache.relay(RelayRequest(target: request.target)).body.collect()
            }
            try await Self.expect(2, fixture, film)
        }
    }

    @Test("A reload that is cut and goes on keeps the pin", arguments: [1, 2])
    func cutAndContinued(_ version: Int) async throws {
        try await Self.run("max-age=600") { fixture, request, film in
            var changed = film
            changed.version = version
            fixture.origin.serve("/film", changed, .first(1, .cut(after: 1_000_000)))
            var request = request
            request.policy = .reload
            let asked = request
            try await fixture.withCache { cache in
                let bytes = try await cache.response(for: asked).read().bytes
                #expect(firstDifference(bytes, changed.allBytes) == nil)
            }
            #expect(fixture.origin.log.exchanges.suffix(2).map(\.status) == [200, 206])
            try await Self.expect(version, fixture, film)
        }
    }

    @Test("A job brings the new one, pinned or not", arguments: [true, false])
    func job(_ isPinned: Bool) async throws {
        try await Self.run { fixture, request, film in
            fixture.origin.update("/film") { $0.version = 2 }
            var request = request
            request.options.set(.pinned, to: isPinned)
            let asked = request
            try await fixture.withCache { cache in
                let status = try await cache.downloads.start(asked).wait()
                #expect(status.state == .finished && status.bytes == Self.length)
            }
            try await Self.expect(2, fixture, film)
        }
    }

    // MARK: The new one does not come

    @Test(
        "One request for 100 bytes of something newer takes nothing away",
        .tags(.long),
        arguments: 0..<4
    )
    func part(_ kind: Int) async throws {
        try await Self.run { fixture, request, film in
            var changed = film
            changed.version = 2
            let new = changed.allBytes[1_000_000..<1_000_100]
            // A request for the whole of it does not get that.
            let gate = OriginGate()
            fixture.origin.serve("/film", changed, OriginScript(.wait(for: gate, after: 2_200_000)))
            var request = request
            request.range = .bounded(1_000_000..<1_000_100)
            let asked = request
            try await fixture.withCache { cache in
                switch kind {
                case 0:
                    #expect(
                        try await firstDifference(cache.response(for: asked).read().bytes, new)
                            == nil
                    )
                case 1:
                    let streamed = try await cache.streamedResponse(
                        for: asked,
                        deadline: .seconds(60)
                    )
                    #expect(try await firstDifference(streamed.body.collect(), new) == nil)
                case 2:
                    var relayed = RelayRequest(target: request.target)
                    relayed.fields[.range] = "bytes=1000000-1000099"
                    #expect(
                        try await firstDifference(cache.relay(relayed).body.collect(), new) == nil
                    )
                default:
                    _ = try await cache.prefetch(fixture.request("/film"), bytes: 100_000)
                }
                try await Self.expect(1, cache, fixture.request("/film"), film)
            }
            gate.open()
            try await Self.expect(1, fixture, film)
        }
    }

    @Test("A reload that hangs, or whose connection is lost, takes nothing away", arguments: 0..<3)
    func unfinished(_ kind: Int) async throws {
        try await Self.run("max-age=600") { fixture, request, film in
            var changed = film
            changed.version = 2
            let gate = OriginGate()
            let behaviour: OriginBehaviour =
                switch kind {
                case 0: OriginBehaviour.faithful.with { $0.gate = gate }
                case 1: .wait(for: gate, after: 500_000)
                default: .cut(after: 500_000)
                }
            fixture.origin.serve("/film", changed, OriginScript(behaviour))
            var request = request
            request.policy = .reload
            let asked = request
            try await fixture.withCache {
                $0.retries = 1
            } _: { cache in
                let task = Task { try await cache.response(for: asked).read() }
                await fixture.origin.waitUntil { log in
                    log.exchanges.count >= 2 && (kind == 0 || log.bodyBytesWritten >= 3_400_000)
                }
                // While it hangs, and afterwards.
                try await Self.expect(1, cache, fixture.request("/film"), film)
                task.cancel()
                _ = await task.result
                try await Self.expect(1, cache, fixture.request("/film"), film)
            }
            gate.open()
            try await Self.expect(1, fixture, film)
        }
    }

    @Test("An answer that must not be stored takes nothing away", arguments: [true, false])
    func notStorable(_ isRelayed: Bool) async throws {
        try await Self.run { fixture, request, film in
            var changed = film
            changed.version = 2
            changed.fields[.cacheControl] = "no-store"
            fixture.origin.serve("/film", changed)
            try await fixture.withCache { cache in
                if isRelayed {
                    let response = try await cache.relay(RelayRequest(target: request.target))
                    #expect(
                        try await firstDifference(response.body.collect(), changed.allBytes) == nil
                    )
                } else {
                    #expect(
                        try await firstDifference(cache.data(for: request), changed.allBytes) == nil
                    )
                }
            }
            try await Self.expect(1, fixture, film)
        }
    }

    @Test(
        "An error takes nothing away, however long it may be kept",
        arguments: [404, 410, 500, 503],
        [true, false]
    )
    func error(_ status: Int, isRelayed: Bool) async throws {
        try await Self.run { fixture, request, film in
            let error = OriginBehaviour.status(status).with {
                $0.overrides[.cacheControl] = "max-age=600"
            }
            fixture.origin.serve("/film", film, OriginScript(error))
            try await fixture.withCache({ $0.retries = 1 }) { cache in
                do {
                    if isRelayed {
                        let relayed = try await cache.relay(RelayRequest(target: request.target))
                        _ = try await relayed.body.collect()
                    } else {
                        _ = try await cache.response(for: request).read()
                    }
                } catch let error as CacheError {
                    #expect([.httpStatus, .originFailed].contains(error.code))
                }
            }
            try await Self.expect(1, fixture, film)
        }
    }

    @Test("A body that does not fit takes nothing away", arguments: [true, false])
    func tooLarge(isAboveLimit: Bool) async throws {
        try await Self.run { fixture, request, film in
            let length: Int64 = isAboveLimit ? 6_000_000 : 4_000_000
            let changed = OriginResource.generated(length: length, seed: 9)
            fixture.origin.serve("/film", changed)
            // The new one is larger than the limit, or than what the old one leaves of it.
            try await fixture.withCache({ $0.diskLimit = 5_000_000 }) { cache in
                let bytes = try await cache.data(for: request)
                #expect(firstDifference(bytes, changed.allBytes) == nil)
            }
            try await Self.expect(1, fixture, film)
        }
    }

    @Test("A body that is not what was promised takes nothing away", arguments: [0, 1, 2])
    func digest(_ kind: Int) async throws {
        try await Self.run { fixture, request, film in
            var changed = film
            changed.version = 2
            if kind == 2 { changed.framing = .chunked }
            let digest = OriginBehaviour.faithful.with {
                $0.overrides[HTTPField.Name("Repr-Digest") ?? .contentLocation] =
                    "sha-256=:47DEQpj8HBSa+/TImW+5JCeuQeRkm5NMpJWZG3hSuFU=:"
            }
            fixture.origin.serve("/film", changed, OriginScript(digest))
            var request = request
            // An expectation of the caller's instead of the origin's.
            if kind == 1 {
                fixture.origin.serve("/film", changed)
                request.expectedDigests = try [#require(ContentDigest.of([1, 2, 3]))]
            }
            let asked = request
            try await fixture.withCache { cache in
                let error = await #expect(throws: CacheError.self) {
                    try await cache.data(for: asked)
                }
                #expect(error?.code == .integrityFailed)
            }
            try await Self.expect(1, fixture, film)
        }
    }

    @Test("Another variant takes nothing away, nor do many")
    func variants() async throws {
        var film = OriginResource.generated(length: Self.length, cacheControl: "max-age=600")
        film.fields[.vary] = "Accept-Language"
        try await CacheFixture.run { fixture in
            fixture.origin.serve("/film", film)
            var pinned = try fixture.request("/film")
            pinned.options.insert(.pinned)
            pinned.fields[.acceptLanguage] = "de"
            let german = pinned
            try await fixture.withCache { cache in
                _ = try await cache.response(for: german).read()
                fixture.origin.update("/film") { $0.version = 2 }
                for language in ["en", "fr", "it", "es", "pt", "nl", "sv", "da", "nb", "fi"] {
                    var other = try fixture.request("/film")
                    other.fields[.acceptLanguage] = language
                    _ = try await cache.response(for: other).read()
                }
                try await Self.expect(1, cache, german, film)
                // All of them vary by another field now.
                fixture.origin.update("/film") { resource in
                    resource.fields[.vary] = "Accept"
                    resource.fields[.cacheControl] = "no-store"
                }
                var other = try fixture.request("/film")
                other.fields[.acceptLanguage] = "el"
                _ = try await cache.response(for: other).read()
                try await Self.expect(1, cache, german, film)
            }
        }
    }
}

extension ContentDigest {
    /// The SHA-256 of bytes; nil where this machine cannot make one.
    fileprivate static func of(_ bytes: [UInt8]) -> ContentDigest? {
        guard let context = DigestContext(.sha256) else { return nil }
        return bytes.withUnsafeBytes { context.update($0) } ? context.finish() : nil
    }
}
