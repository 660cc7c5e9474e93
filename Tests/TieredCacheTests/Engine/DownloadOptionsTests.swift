import FoundationEssentials
import HTTPCaching
import HTTPTypes
import TestParts
import Testing
import TieredCacheTesting

@testable import TieredCache

/// What the configuration says about downloads, seen from the origin.
@Suite(.tags(.realTime), .timeLimit(.minutes(10)))
struct DownloadOptionsTests {
    private let film = OriginResource.generated(length: 3 << 20, cacheControl: "max-age=60")

    @Test("A signature that expires under way is renewed, and the bytes that are there are kept")
    func resolver() async throws {
        try await CacheFixture.run { fixture in
            let cut = OriginScript.first(1, .cut(after: 1 << 20)).then(.status(403))
            fixture.origin.serve("/film?sig=1", film, cut)
            fixture.origin.serve("/film?sig=2", film)
            let request = try CacheRequest(fixture.origin.url("/film?sig=1"), key: "film")
            let fresh = fixture.origin.url("/film?sig=2")
            let asked = Guarded<[Int]>([])
            let data = try await fixture.withCache {
                $0.urlResolver = { request, status in
                    asked.withLock { $0.append(status) }
                    return request.explicitKey == "film" ? fresh : nil
                }
            } _: { cache in
                try await cache.data(for: request)
            }
            #expect(firstDifference(data, film.allBytes) == nil)
            #expect(asked.withLock { $0 } == [403])
            let exchanges = fixture.origin.log.exchanges
            #expect(exchanges.map(\.status) == [200, 403, 206])
            // The last 64 KiB of what is there come again, since another URL may lead to something
            // else. A connection that is cut may take some of the mebibyte with it.
            let range = try #require(exchanges.last?.fields[.range])
            let start = try #require(range.split { "=-".contains($0) }.dropFirst().first)
            #expect(try (1...983_040).contains(#require(Int(start))))
            #expect(range.hasSuffix("-3145727"))
        }
    }

    @Test("Bounded requests: no answer is longer than asked, and no byte comes twice")
    func bounded() async throws {
        try await CacheFixture.run { fixture in
            fixture.origin.serve("/film", film)
            let request = try fixture.request("/film")
            let data = try await fixture.withCache {
                $0.maximumRequestLength = 1 << 20
            } _: { cache in
                try await cache.data(for: request)
            }
            #expect(firstDifference(data, film.allBytes) == nil)
            let exchanges = fixture.origin.log.exchanges
            #expect(exchanges.map(\.bodyBytesWritten) == [1 << 20, 1 << 20, 1 << 20])
            // On one connection.
            #expect(Set(exchanges.map(\.connection)).count == 1)
        }
    }

    @Test("A permanent redirect is followed once; a temporary one each time")
    func redirects() async throws {
        try await CacheFixture.run { fixture in
            fixture.origin.serve("/new", film)
            fixture.origin.serve("/old", OriginScript(.redirect(to: "/new", status: 301)))
            fixture.origin.serve("/now", OriginScript(.redirect(to: "/new", status: 302)))
            try await fixture.withCache { cache in
                for path in ["/old", "/now"] {
                    let request = try fixture.request(path)
                    for _ in 0..<2 {
                        let data = try await cache.data(for: request)
                        #expect(firstDifference(data, film.allBytes) == nil)
                        try await cache.remove(request)
                    }
                }
            }
            #expect(
                fixture.origin.log.exchanges.map(\.path)
                    == ["/old", "/new", "/new", "/now", "/new", "/now", "/new"]
            )
        }
    }

    @Test("The head of an empty body is all of it")
    func emptyPrefetch() async throws {
        try await CacheFixture.run { fixture in
            fixture.origin.serve("/empty", .text("", cacheControl: "max-age=60"))
            let request = try fixture.request("/empty")
            try await fixture.withCache { cache in
                let result = try await cache.prefetch(request, bytes: 1000)
                #expect(result.bytesFromOrigin == 0 && result.status == .ok)
                #expect(await cache.contains(request))
            }
        }
    }

    @Test("A limited download takes as long as its rate allows")
    func bandwidth() async throws {
        let time = InstantTime(longest: .seconds(100_000))
        let limits = BandwidthLimits(total: 1000, byPriority: [.background: 100])
        let limiter = BandwidthLimiter(limits, time: time)
        for _ in 0..<10 { try await limiter.take(1000, priority: .playing) }
        let fast = time.monotonicTime().nanoseconds
        #expect(fast >= 9_700_000_000 && fast <= 10_000_000_000)
        for _ in 0..<10 { try await limiter.take(100, priority: .background) }
        #expect(time.monotonicTime().nanoseconds - fast >= 9_700_000_000)
    }

    @Test("An answer is there as long as a share in its transfer, however many have ended since")
    func answers() async throws {
        let queue = QueueBench()
        let join = { (number: Int) in
            queue.join("a", selector: "#\(number)", coverage: 0..<Int64.max) { context in
                context.shared.didReceiveHead(.notModified(nil), of: context, group: nil)
                return .success(())
            }
        }
        let shares = (0..<200).map(join)
        for share in shares { try await share.value() }
        #expect(shares.allSatisfy { $0.context?.outcome != nil })
        weak let context = shares[0].context
        withExtendedLifetime(shares) { #expect(context != nil) }
        var last: Subscription? = join(200)
        try await last?.value()
        weak let other = last?.context
        last = nil
        // The thread that has ended it may still have it.
        while other != nil { await Task.yield() }
    }
}
