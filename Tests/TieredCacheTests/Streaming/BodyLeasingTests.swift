import FoundationEssentials
import HTTPCaching
import TestParts
import Testing
import TieredCacheTesting

@testable import TieredCache

#if canImport(Glibc)
import Glibc
#elseif canImport(Darwin)
import Darwin
#endif

/// Bodies that give what is stored as a part of its file, and the rest as chunks.
@Suite("Bodies that lease", .tags(.realTime), .timeLimit(.minutes(10)))
struct BodyLeasingTests {
    private static let film = OriginResource.generated(length: 900_001, cacheControl: "max-age=600")
    private static let stored: Range<Int64> = 0..<400_000

    enum Kind: CaseIterable {
        case followed, streamed
    }

    /// All bytes from here on, and how many of them were leased.
    private func read(_ body: ResponseBody) async throws -> (bytes: [UInt8], leased: Int64) {
        var iterator = body.makeAsyncIterator()
        var bytes: [UInt8] = []
        var leased: Int64 = 0
        while true {
            let sent = iterator.lease(1000...100_000) { lease in
                #expect((1000...100_000).contains(lease.count))
                #expect(lease.range.lowerBound == Int64(bytes.count))
                bytes += [UInt8](unsafeUninitializedCapacity: Int(lease.count)) { room, count in
                    count = pread(
                        lease.descriptor,
                        room.baseAddress,
                        room.count,
                        off_t(lease.place.lowerBound)
                    )
                }
                return lease.count
            }
            if let sent {
                leased += sent
            } else if let chunk = try await iterator.next(atMost: 50_000) {
                #expect(chunk.count <= 50_000)
                bytes += chunk
            } else {
                return (bytes, leased)
            }
        }
    }

    @Test("What a socket does not take of a lease was not read")
    func partial() async throws {
        try await CacheFixture.run { fixture in
            fixture.origin.serve("/film", Self.film)
            let request = try fixture.request("/film")
            try await fixture.withCache({ $0.memoryLimit = 65_536 }) { cache in
                _ = try await cache.data(for: request)
                let response = try await cache.response(for: request)
                var iterator = response.body.makeAsyncIterator()
                #expect(iterator.lease(1000...100_000, send: { _ in 0 }) == 0)
                #expect(iterator.lease(1000...100_000, send: { _ in nil }) == nil)
                #expect(iterator.lease(1000...100_000, send: { _ in 70_001 }) == 70_001)
                let next = try #require(try await iterator.next(atMost: 10))
                #expect(Array(next) == Self.film.bytes(70_001..<70_011))
                #expect(response.bytesFromCache == 70_011)
            }
        }
    }

    private func open(
        _ kind: Kind,
        _ request: CacheRequest,
        _ cache: MediaCache
    ) async throws -> CacheResponse {
        switch kind {
        case .followed: try await cache.response(for: request)
        case .streamed: try await cache.streamedResponse(for: request)
        }
    }

    @Test(
        "What is stored is leased, what is not is read, in order and counted once",
        arguments: Kind.allCases
    )
    func leases(kind: Kind) async throws {
        try await CacheFixture.run { fixture in
            fixture.origin.serve("/film", Self.film)
            let request = try fixture.request("/film")
            try await fixture.withCache({ $0.memoryLimit = 65_536 }) { cache in
                var head = request
                head.range = .bounded(Self.stored)
                _ = try await cache.data(for: head)
                let response = try await open(kind, request, cache)
                let (bytes, leased) = try await read(response.body)
                let isRight = bytes == Self.film.bytes(0..<900_001)
                #expect(isRight)
                #expect(leased >= Self.stored.count / 65_536 * 65_536)
                #expect(response.bytesFromCache >= Self.stored.count / 65_536 * 65_536)
                #expect(response.bytesFromCache + response.bytesFromOrigin == 900_001)
                // All of it now, but for the end, which is shorter than is worth it.
                var leasedAgain: Int64 = 0
                // The kernel may take a page back at any time, which is read once more then.
                for _ in 0..<50 where leasedAgain < 900_000 {
                    let again = try await read(try await open(kind, request, cache).body)
                    #expect(firstDifference(again.bytes, bytes) == nil)
                    leasedAgain = again.leased
                }
                #expect(leasedAgain == 900_000 || leasedAgain == 900_001)
            }
            #expect(fixture.origin.log.bodyBytesWritten == 900_001)
        }
    }

    @Test("What another process may give up is not leased, nor what is in memory")
    func leasesNotAll() async throws {
        try await CacheFixture.run { fixture in
            fixture.origin.serve("/film", Self.film)
            fixture.origin.serve("/small", .generated(length: 3000, cacheControl: "max-age=600"))
            try await fixture.withCache({ $0.memoryLimit = 65_536 }) { cache in
                let film = try fixture.request("/film")
                _ = try await cache.data(for: film)
                try await fixture.withCache({ $0.memoryLimit = 65_536 }) { guest in
                    let seen = try await read(try await guest.response(for: film).body)
                    #expect(seen.leased == 0 && seen.bytes.count == 900_001)
                }
                let small = try fixture.request("/small")
                _ = try await cache.data(for: small)
                let response = try await cache.response(for: small)
                #expect(response.source == .memory)
                #expect(try await read(response.body).leased == 0)
            }
        }
    }
}
