import FoundationEssentials
import HTTPTypes
import TestParts
import Testing
import TieredCacheTesting

@_spi(Benchmarks) @testable import TieredCache

/// Digests of what a reader gets.
@Suite(.tags(.realTime), .timeLimit(.minutes(10)))
struct ReaderDigestsTests {
    private let field = HTTPField.Name("Repr-Digest") ?? .contentLocation
    private let wrong = "sha-256=:AAAAAAAAAAAAAAAAAAAAAAAAAAAAAAAAAAAAAAAAAAA=:"

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
            request.expectedDigests = [try ContentDigest.of(film().allBytes)]
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

    private func digests(
        _ expected: [ContentDigest],
        promised: [ContentDigest] = [],
        of cache: MediaCache
    ) throws -> ReaderDigests {
        var request = try CacheRequest("http://example.com/film")
        request.expectedDigests = expected
        return ReaderDigests(promised: promised, judge: cache.responder.bodyJudge(for: request))
    }

    @Test("Bytes that are left out are not compared, and those of an empty body are")
    func order() async throws {
        let fixture = DigestFixture()
        let disk = InMemoryFileSystem(time: fixture.time)
        try await fixture.withCache(disk, ScriptedTransport([])) { cache in
            let expected = try ContentDigest.of(Data([1, 2, 3]))
            func run(_ parts: [(Int64, [UInt8])], length: Int64) throws -> ReaderDigests.Finding {
                let digests = try digests([expected], of: cache)
                for (offset, part) in parts {
                    part.withUnsafeBytes { digests.take($0, at: offset) }
                }
                return digests.finding(atEnd: length)
            }
            #expect(try run([(0, [1]), (1, [2, 3])], length: 3) == .right)
            let wrong = try ContentDigest.of(Data([1, 2, 4]))
            #expect(
                try run([(0, [1]), (1, [2, 4])], length: 3) == .wrong(expected, found: wrong)
            )
            #expect(try run([(0, [1]), (2, [4])], length: 3) == .incomplete)
            // A reader may come back to what it has left out.
            #expect(try run([(2, [3]), (0, [1]), (1, [2, 3])], length: 3) == .right)
            // What has come before counts as it came first.
            #expect(try run([(0, [1, 2]), (0, [5, 6]), (1, [7, 3])], length: 3) == .right)
            #expect(
                try run([(0, [1, 2]), (1, [2, 4])], length: 3) == .wrong(expected, found: wrong)
            )
            #expect(try run([(0, [1])], length: 3) == .incomplete)
            let empty = try ContentDigest.of(Data())
            #expect(try run([], length: 0) == .wrong(expected, found: empty))
        }
    }

    @Test("A wrong body fails with the same error at each try, and a part of it with none")
    func check() async throws {
        let fixture = DigestFixture()
        let disk = InMemoryFileSystem(time: fixture.time)
        try await fixture.withCache(disk, ScriptedTransport([])) { cache in
            let promised = [try ContentDigest.of(Data([1, 2, 3]))]
            let digests = try digests([], promised: promised, of: cache)
            Data([1, 2]).withUnsafeBytes { digests.take($0, at: 0) }
            try digests.check(atEnd: 3)
            Data([4]).withUnsafeBytes { digests.take($0, at: 2) }
            let errors = (0..<2).map { _ in
                #expect(throws: CacheError.self) { try digests.check(atEnd: 3) }
            }
            #expect(errors.map { $0?.code } == [.integrityFailed, .integrityFailed])
            #expect(errors.first??.message == errors.last??.message)
        }
    }
}
