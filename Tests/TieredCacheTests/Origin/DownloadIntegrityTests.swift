import FoundationEssentials
import HTTPTypes
import SystemPackage
import TestParts
import Testing
import TieredCacheTesting

@_spi(Benchmarks) @testable import TieredCache

@Suite(.tags(.realTime), .timeLimit(.minutes(10)))
struct DownloadIntegrityTests {
    private let field = HTTPField.Name("Repr-Digest") ?? .contentLocation
    private static let length: Int64 = 1_500_000

    private func setAside(_ fixture: CacheFixture) throws -> [String] {
        let path = fixture.directory.appending("quarantine").string
        guard FileManager.default.fileExists(atPath: path) else { return [] }
        return try FileManager.default.contentsOfDirectory(atPath: path)
    }

    private func film(version: Int = 1) -> OriginResource {
        var film = OriginResource.generated(length: Self.length, cacheControl: "max-age=3600")
        film.version = version
        return film
    }

    @Test("Row 27: a body that is not what was expected is dropped and fetched once more, whole")
    func refetched() async throws {
        try await CacheFixture.run { fixture in
            fixture.origin.serve("/film", film(), .first(1, .changeVersion(after: Self.length)))
            var request = try fixture.request("/film")
            // The origin has the right bytes only from its second response on.
            request.expectedDigests = [try ContentDigest.of(film(version: 2).allBytes)]
            let wanted = request
            try await fixture.withCache { cache in
                let data = try await cache.data(for: wanted)
                #expect(firstDifference(data, film(version: 2).allBytes) == nil)
                let entry = try await cache.entry(for: wanted)
                #expect(entry?.isComplete == true)
                // The right one has come, so that the wrong one is of no use to anybody.
                #expect(try setAside(fixture).isEmpty)
            }
            let exchanges = fixture.origin.log.exchanges
            #expect(exchanges.map(\.status) == [200, 200])
            #expect(exchanges.last?.fields[.cacheControl] == "no-cache")
            #expect(exchanges.last?.fields[.range] == nil)
        }
    }

    @Test("Row 27: what has taken the name of a wrong body meanwhile is not removed with it")
    func replacedMeanwhile() async throws {
        try await RelayFixture.run { fixture in
            var request = try CacheRequest("http://origin.example/a")
            try await fixture.cache.store(Data([1, 2, 3]), for: request)
            let store = try #require(fixture.cache.engine.storage.disk.openStore)
            let wrong = try #require(try store.entry(for: request.key))
            request.options.insert(.pinned)
            try await fixture.cache.store(Data([4, 5, 6]), for: request)
            fixture.cache.engine.storage.quarantine(wrong, of: request.key)
            #expect(wrong.isSuperseded)
            #expect(try await fixture.cache.entry(for: request)?.isPinned == true)
        }
    }

    @Test("Row 27: wrong twice is an error, nothing of it stays, and a job says why it failed")
    func givesUp() async throws {
        try await CacheFixture.run { fixture in
            var lying = film()
            lying.fields[field] = "sha-256=:AAAAAAAAAAAAAAAAAAAAAAAAAAAAAAAAAAAAAAAAAAA=:"
            fixture.origin.serve("/film", lying)
            let request = try fixture.request("/film")
            try await fixture.withCache { cache in
                let error = await #expect(throws: CacheError.self) {
                    try await cache.data(for: request)
                }
                #expect(error?.code == .integrityFailed)
                // A record and a body, to show what the origin sends.
                let files = try setAside(fixture)
                #expect(files.count == 2)
                let body = try #require(files.first { $0.hasSuffix(".body") })
                let path = fixture.directory.appending("quarantine").appending(body)
                let bytes = try #require(FileManager.default.contents(atPath: path.string))
                #expect(firstDifference(bytes, film().allBytes) == nil)
                #expect(try await cache.entry(for: request) == nil)
                #expect(cache.cachedData(for: request) == nil)
                let handle = try await cache.downloads.start(request)
                let failure = await #expect(throws: CacheError.self) { try await handle.wait() }
                #expect(failure?.code == .integrityFailed)
                #expect(!handle.status.state.isMeantToContinue)
            }
            #expect(fixture.origin.log.exchanges.count == 4)
        }
    }

    @Test("A right digest is checked over resumed parts, and costs no request")
    func matches() async throws {
        try await CacheFixture.run { fixture in
            var film = film()
            let bytes = Data(try ContentDigest.of(film.allBytes).bytes).base64EncodedString()
            film.fields[field] = "sha-256=:\(bytes):"
            fixture.origin.serve("/film", film, .first(1, .cut(after: 700_000)))
            let request = try fixture.request("/film")
            let data = try await fixture.withCache { try await $0.data(for: request) }
            #expect(firstDifference(data, film.allBytes) == nil)
            #expect(fixture.origin.log.exchanges.map(\.status) == [200, 206])
        }
    }
}
