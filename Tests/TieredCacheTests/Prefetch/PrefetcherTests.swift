import HTTPCaching
import HTTPTypes
import TestParts
import Testing
import TieredCacheTesting

@testable import TieredCache

@Suite(.tags(.realTime), .timeLimit(.minutes(10)))
struct PrefetcherTests {
    @Test("The heads of the next items are stored when they are played")
    func heads() async throws {
        try await CacheFixture.run { fixture in
            let film = OriginResource.generated(length: 4 << 20, cacheControl: "max-age=600")
            for item in 0..<3 { fixture.origin.serve("/\(item)", film) }
            let requests = try (0..<3).map { try fixture.request("/\($0)") }
            try await fixture.withCache { cache in
                let prefetcher = cache.prefetcher()
                prefetcher.rank(requests)
                await prefetcher.waitUntilIdle()
                let asked = fixture.origin.log.exchanges.count
                #expect(fixture.origin.log.bodyBytesWritten <= 3 * 1_000_000)
                for request in requests {
                    let head = try await cache.bytes(for: request, range: 0..<800_000).collect()
                    #expect(firstDifference(head, film.allBytes.prefix(800_000)) == nil)
                }
                #expect(fixture.origin.log.exchanges.count == asked)
            }
        }
    }

    @Test("A swipe ends the downloads of what is not next any more")
    func swipe() async throws {
        try await CacheFixture.run { fixture in
            let film = OriginResource.generated(length: 4 << 20, cacheControl: "max-age=600")
            fixture.origin.serve("/old", film, OriginScript(.stall(after: 1000)))
            fixture.origin.serve("/new", film)
            let old = try fixture.request("/old")
            let new = try fixture.request("/new")
            try await fixture.withCache { cache in
                var options = PrefetchOptions()
                options.maximumRunning = 1
                let prefetcher = cache.prefetcher(options: options)
                prefetcher.rank([old])
                await fixture.origin.waitUntil { !$0.exchanges(for: "/old").isEmpty }
                prefetcher.rank([new])
                await fixture.origin.waitUntil { log in
                    log.exchanges(for: "/old").allSatisfy { $0.outcome == .disconnected }
                        && !log.exchanges(for: "/new").isEmpty
                }
                await prefetcher.waitUntilIdle()
                var part = new
                part.range = .bounded(0..<800_000)
                #expect(await cache.contains(part))
            }
        }
    }

    @Test("What runs gives way when the player runs short, and goes on when it has enough")
    func shortage() async throws {
        try await CacheFixture.run { fixture in
            let film = OriginResource.generated(length: 4 << 20, cacheControl: "max-age=600")
            let script = OriginScript.first(1, .stall(after: 200_000))
            fixture.origin.serve("/next", film, script)
            fixture.origin.serve("/playing", film)
            let next = try fixture.request("/next")
            try await fixture.withCache {
                // The only line that there is.
                $0.maximumDownloads = 1
                $0.timeout = .seconds(300)
            } _: { cache in
                let prefetcher = cache.prefetcher()
                prefetcher.playerHas(.duration(.seconds(30)))
                prefetcher.rank([next])
                await fixture.origin.waitUntil { $0.bodyBytesWritten(for: "/next") >= 200_000 }
                prefetcher.playerHas(.duration(.seconds(5)))
                var playing = try fixture.request("/playing")
                playing.priority = .playing
                #expect(try await firstDifference(cache.data(for: playing), film.allBytes) == nil)
                await fixture.origin.waitUntil { log in
                    log.exchanges(for: "/next").allSatisfy { $0.outcome == .disconnected }
                }
                prefetcher.playerHas(.duration(.seconds(15)))
                await prefetcher.waitUntilIdle()
                #expect(fixture.origin.log.exchanges(for: "/next").count == 1)
                prefetcher.playerHas(.duration(.seconds(30)))
                await prefetcher.waitUntilIdle()
                var head = next
                head.range = .bounded(0..<800_000)
                #expect(await cache.contains(head))
            }
        }
    }

    @Test("All items of a ranking together cost no more than the budget")
    func budget() async throws {
        try await CacheFixture.run { fixture in
            let film = OriginResource.generated(length: 4 << 20, cacheControl: "max-age=600")
            for item in 0..<6 { fixture.origin.serve("/\(item)", film) }
            let requests = try (0..<6).map { try fixture.request("/\($0)") }
            try await fixture.withCache { cache in
                var options = PrefetchOptions()
                options.headBytes = 400_000
                options.budget = 1_000_000
                let prefetcher = cache.prefetcher(options: options)
                prefetcher.rank(requests)
                await prefetcher.waitUntilIdle()
                // Whole blocks, of which each of three heads ends in one.
                #expect(fixture.origin.log.bodyBytesWritten <= 1_000_000 + 3 * 65_536)
                #expect(fixture.origin.log.exchanges(for: "/0").count == 1)
                #expect(fixture.origin.log.exchanges(for: "/3").isEmpty)
            }
        }
    }

    private static func box(_ type: String, _ size: Int) -> [UInt8] {
        (0..<4).map { UInt8(truncatingIfNeeded: size >> (24 - 8 * $0)) } + Array(type.utf8)
            + [UInt8](repeating: 7, count: size - 8)
    }

    /// A film whose index of so many bytes is at its end.
    private static func film(index: Int) -> OriginResource {
        let body = box("ftyp", 24) + box("mdat", 5_000_000) + box("moov", index)
        var film = OriginResource(.bytes(body), contentType: "video/mp4")
        film.fields[.cacheControl] = "max-age=600"
        return film
    }

    @Test("Indexes at the ends of films are within the budget too")
    func tailsWithinBudget() async throws {
        try await CacheFixture.run { fixture in
            for item in 0..<4 { fixture.origin.serve("/\(item).mp4", Self.film(index: 900_000)) }
            let requests = try (0..<4).map { try fixture.request("/\($0).mp4") }
            try await fixture.withCache { cache in
                var options = PrefetchOptions()
                options.headBytes = 400_000
                options.budget = 1_500_000
                let prefetcher = cache.prefetcher(options: options)
                prefetcher.rank(requests)
                await prefetcher.waitUntilIdle()
                // And what a piece is rounded up to: a block each for head, look and index.
                #expect(fixture.origin.log.bodyBytesWritten <= 1_500_000 + 9 * 65_536)
                #expect(await cache.contains(requests[0].with(range: 0..<400_000)))
            }
        }
    }

    @Test("What comes of items that fail is within the budget")
    func failuresWithinBudget() async throws {
        try await CacheFixture.run { fixture in
            let film = OriginResource.generated(length: 5_000_000, cacheControl: "max-age=600")
            let script = OriginScript.first(1, .cut(after: 327_680)).then(.status(404))
            for item in 0..<8 { fixture.origin.serve("/\(item)", film, script) }
            let requests = try (0..<8).map { try fixture.request("/\($0)") }
            try await fixture.withCache { cache in
                var options = PrefetchOptions()
                options.headBytes = 400_000
                options.budget = 1_000_000
                let prefetcher = cache.prefetcher(options: options)
                prefetcher.rank(requests)
                await prefetcher.waitUntilIdle()
                let asked = Set(fixture.origin.log.exchanges.map(\.path))
                var stored: [Int64] = []
                for request in requests {
                    stored.append(try await cache.entry(for: request)?.storedBytes ?? 0)
                }
                // A cut may lose what the socket still has, so that an item brings 327,680 bytes or
                // fewer.
                let last = (0..<8).last { asked.contains("/\($0)") } ?? 0
                #expect(asked == Set((0...last).map { "/\($0)" }) && asked.count >= 3)
                // An item brings its share of the budget, rounded up to a block, at most.
                let rounding = Int64(last + 1) * 65_536
                let before = options.budget - options.leastBytes + rounding
                #expect(stored[..<last].reduce(0, +) <= before)
                #expect(stored.reduce(0, +) <= options.budget + rounding)
            }
        }
    }

    @Test("The index at the end of a film comes with its head")
    func tail() async throws {
        try await CacheFixture.run { fixture in
            let film = Self.film(index: 30_000)
            guard case .bytes(let body) = film.body else { return }
            fixture.origin.serve("/film.mp4", film)
            let request = try fixture.request("/film.mp4")
            try await fixture.withCache { cache in
                let prefetcher = cache.prefetcher()
                prefetcher.rank([request])
                await prefetcher.waitUntilIdle()
                let asked = fixture.origin.log.exchanges.count
                #expect(fixture.origin.log.bodyBytesWritten <= 800_000 + 1_500_000)
                var options = ReaderOptions()
                // Ahead of what is read here nothing was prefetched.
                options.maximumReadAhead = 0
                let reader = try await cache.reader(for: request, options: options)
                let index = try await reader.bytes(at: 5_000_024, count: 40_000)
                #expect(firstDifference(index, Array(body[5_000_024...])) == nil)
                #expect(
                    try await firstDifference(
                        reader.bytes(at: 0, count: 800_000),
                        Array(body[..<800_000])
                    ) == nil
                )
                #expect(fixture.origin.log.exchanges.count == asked)
            }
        }
    }
}

extension Prefetcher {
    /// Waits until nothing runs that was started before.
    fileprivate func waitUntilIdle() async {
        while let task = state.withLock({ $0.tasks.values.first }) {
            await task.value
        }
    }
}

extension CacheRequest {
    fileprivate func with(range: Range<Int64>) -> CacheRequest {
        var copy = self
        copy.range = .bounded(range)
        return copy
    }
}
