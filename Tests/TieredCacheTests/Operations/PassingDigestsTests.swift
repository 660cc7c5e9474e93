import FoundationEssentials
import HTTPTypes
import TestParts
import Testing
import TieredCacheTesting

@testable import TieredCache

/// Digests of bodies that are not stored.
@Suite(.tags(.realTime), .timeLimit(.minutes(10)))
struct PassingDigestsTests {
    private let field = HTTPField.Name("Repr-Digest") ?? .contentLocation
    private let wrong = "sha-256=:AAAAAAAAAAAAAAAAAAAAAAAAAAAAAAAAAAAAAAAAAAA=:"

    private func digest(of bytes: Data) throws -> ContentDigest {
        var digest: ContentDigest?
        if let context = DigestContext(.sha256) {
            let isTaken = bytes.withUnsafeBytes { context.update($0) }
            if isTaken { digest = context.finish() }
        }
        return try #require(digest)
    }

    private func film(_ cacheControl: String = "no-store") -> OriginResource {
        .generated(length: 700_000, cacheControl: cacheControl)
    }

    private func collect(
        _ request: CacheRequest,
        from cache: MediaCache
    ) async throws -> (Data, CacheError?) {
        let response = try await cache.response(for: request)
        var bytes = Data()
        do throws(CacheError) {
            for try await chunk in response.body { bytes.append(chunk) }
        } catch {
            return (bytes, error)
        }
        return (bytes, nil)
    }

    @Test("What must not be stored is compared as well; the error comes at the end")
    func notStored() async throws {
        try await CacheFixture.run { fixture in
            var lying = film()
            lying.fields[field] = wrong
            fixture.origin.serve("/film", lying)
            try await fixture.withCache { cache in
                let (bytes, error) = try await collect(fixture.request("/film"), from: cache)
                #expect(error?.code == .integrityFailed)
                #expect(firstDifference(bytes, film().allBytes) == nil)
            }
            #expect(fixture.origin.log.exchanges.count == 1)
        }
    }

    @Test("The right digest objects to nothing, with a disk and without", arguments: [true, false])
    func matches(hasDisk: Bool) async throws {
        try await CacheFixture.run { fixture in
            fixture.origin.serve("/film", film(hasDisk ? "no-store" : "max-age=60"))
            var request = try fixture.request("/film")
            request.expectedDigests = [try digest(of: film().allBytes)]
            let wanted = request
            try await fixture.withCache {
                if !hasDisk { $0.directory = nil }
            } _: { cache in
                let (bytes, error) = try await collect(wanted, from: cache)
                #expect(error == nil)
                #expect(firstDifference(bytes, film().allBytes) == nil)
            }
        }
    }

    @Test("A digest of coded bytes says nothing about the decoded ones", arguments: [true, false])
    func coded(isStored: Bool) async throws {
        try await CacheFixture.run { fixture in
            var film = film(isStored ? "max-age=60" : "no-store")
            film.fields[field] = wrong
            fixture.origin.serve("/film", film, OriginScript(.gzipCoded))
            try await fixture.withCache { cache in
                let (bytes, error) = try await collect(fixture.request("/film"), from: cache)
                #expect(error == nil)
                #expect(firstDifference(bytes, film.allBytes) == nil)
            }
        }
    }

    @Test("Bytes that come out of order are not compared, and those of an empty body are")
    func order() throws {
        let expected = try digest(of: Data([1, 2, 3]))
        func run(_ parts: [(Int64, [UInt8])], length: Int64?) throws -> ContentDigest? {
            let digests = try #require(PassingDigests([expected]))
            for (offset, part) in parts { digests.take(BodyChunk(part), at: offset) }
            return digests.mismatch(completeLength: length)?.found
        }
        #expect(try run([(0, [1]), (1, [2, 3])], length: 3) == nil)
        #expect(try run([(0, [1]), (1, [2, 4])], length: 3) != nil)
        #expect(try run([(0, [1]), (2, [4])], length: 3) == nil)
        // What has come before counts as it came first.
        #expect(try run([(0, [1, 2]), (0, [5, 6]), (1, [7, 3])], length: 3) == nil)
        #expect(try run([(0, [1, 2]), (1, [2, 4])], length: 3) != nil)
        #expect(try run([(0, [1])], length: 3) == nil)
        let empty = try digest(of: Data())
        #expect(try run([], length: nil) == empty)
        #expect(PassingDigests([]) == nil)
    }

    @Test("Digests that go on behind others leave them as they are")
    func goesOn() throws {
        let first = try #require(PassingDigests([digest(of: Data([1, 2, 3]))]))
        first.take(BodyChunk([1, 2]), at: 0)
        let second = PassingDigests(behind: first)
        second.take(BodyChunk([4]), at: 2)
        #expect(first.position == 2 && second.position == 3)
        #expect(second.mismatch(completeLength: 3) != nil)
        first.take(BodyChunk([3]), at: 2)
        #expect(first.isWhole(to: 3) && first.mismatch(completeLength: 3) == nil)
    }
}
