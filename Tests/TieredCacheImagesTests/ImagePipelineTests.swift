import TestParts
import Testing
import TieredCache
import TieredCacheImages
import TieredCacheTesting

@Suite("Pictures", .tags(.realTime), .timeLimit(.minutes(2)))
struct ImagePipelineTests {
    private static let small = ImageSize(width: 10, height: 10)

    @Test("One that many ask for at once is fetched and decoded once, and is in memory then")
    func once() async throws {
        try await ImageFixture.run { fixture in
            let gate = OriginGate()
            fixture.serve("/a", .first(1, .wait(for: gate, after: 1)))
            let request = try fixture.request("/a")
            #expect(fixture.pipeline.cachedPicture(for: request) == nil)
            try await withThrowingTaskGroup { group in
                for _ in 0..<20 {
                    group.addTask { try await fixture.pipeline.picture(for: request) }
                }
                // All have missed by then.
                while fixture.pipeline.statistics.memoryMisses < 20 { await Task.yield() }
                gate.open()
                for try await picture in group { #expect(picture.text == "image /a") }
            }
            #expect(fixture.pipeline.cachedPicture(for: request)?.text == "image /a")
            let statistics = fixture.pipeline.statistics
            #expect(statistics.decoded == 1 && statistics.bodiesFromOrigin == 1)
            #expect(statistics.memoryHits == 1 && fixture.requests(for: "/a") == 1)
        }
    }

    @Test("Each size is a picture of its own, of one body, and all leave with the entry")
    func sizes() async throws {
        try await ImageFixture.run { fixture in
            fixture.serve("/a")
            let (whole, small) = (
                try fixture.request("/a"), try fixture.request("/a", Self.small)
            )
            #expect(try await fixture.pipeline.picture(for: whole).size == nil)
            #expect(fixture.pipeline.cachedPicture(for: small) == nil)
            #expect(try await fixture.pipeline.picture(for: small).size == Self.small)
            #expect(fixture.pipeline.cachedPicture(for: small)?.size == Self.small)
            #expect(fixture.requests(for: "/a") == 1)
            #expect(fixture.pipeline.statistics.bodiesFromCache == 1)
            try await fixture.cache.remove(whole.bytes)
            #expect(fixture.pipeline.cachedPicture(for: whole) == nil)
            #expect(fixture.pipeline.cachedPicture(for: small) == nil)
        }
    }

    @Test("Who is cancelled returns at once; the download ends with the last one")
    func cancellation() async throws {
        try await ImageFixture.run { fixture in
            fixture.serve("/a", .first(1, .stall(after: 1)))
            let request = try fixture.request("/a")
            let tasks = (0..<2).map { _ in
                Task { try await fixture.pipeline.picture(for: request) }
            }
            await fixture.origin.waitUntil { $0.bodyBytesWritten > 0 }
            while fixture.pipeline.statistics.memoryMisses < 2 { await Task.yield() }
            for (index, task) in tasks.enumerated() {
                task.cancel()
                await #expect(throws: CancellationError.self) { try await task.value }
                #expect(fixture.pipeline.statistics.abandoned == index)
            }
            // The origin sees that nobody wants it any more.
            await fixture.origin.waitUntil { $0.exchanges.last?.ended != nil }
            #expect(try await fixture.pipeline.picture(for: request).text == "image /a")
        }
    }

    @Test("A list is there before it is shown; what has left it is abandoned")
    func prefetch() async throws {
        try await ImageFixture.run { fixture in
            fixture.serve("/a", .first(1, .stall(after: 1)))
            fixture.serve("/b")
            let (first, second) = (try fixture.request("/a"), try fixture.request("/b"))
            fixture.pipeline.prefetch([first])
            await fixture.origin.waitUntil { $0.bodyBytesWritten > 0 }
            fixture.pipeline.prefetch([second])
            while fixture.pipeline.statistics.decoded == 0 { await Task.yield() }
            while fixture.pipeline.statistics.abandoned == 0 { await Task.yield() }
            #expect(fixture.pipeline.cachedPicture(for: second)?.text == "image /b")
            #expect(fixture.pipeline.statistics.memoryHits == 1)
        }
    }

    @Test("What is no picture, and what the origin refuses, is told to all that wait")
    func failures() async throws {
        try await ImageFixture.run { fixture in
            fixture.origin.serve("/text", .text("words", cacheControl: "max-age=60"))
            let (text, missing) = (try fixture.request("/text"), try fixture.request("/missing"))
            await #expect(throws: TextDecoder.NoPicture.self) {
                try await fixture.pipeline.picture(for: text)
            }
            let error = await #expect(throws: CacheError.self) {
                try await fixture.pipeline.picture(for: missing)
            }
            #expect(error?.code == .httpStatus && error?.status == 404)
            #expect(fixture.pipeline.statistics.failed == 2)
        }
    }

    @Test(
        "A picture is kept as long as its body is fresh, or the pipeline wants, unless forbidden",
        arguments: [
            ("max-age=3600", 0, true), ("no-cache", 0, false), ("no-cache", 60, true),
            ("no-store", 60, false),
        ]
    )
    func lifetime(cacheControl: String, minimum: Int, isKept: Bool) async throws {
        try await ImageFixture.run {
            $0.minimumLifetime = .seconds(minimum)
        } _: { fixture in
            fixture.serve("/a", cacheControl: cacheControl)
            let request = try fixture.request("/a")
            _ = try await fixture.pipeline.picture(for: request)
            #expect((fixture.pipeline.cachedPicture(for: request) != nil) == isKept)
        }
    }

    @Test("A cache without a directory keeps them as well")
    func withoutDirectory() async throws {
        try await ImageFixture.run(isInMemory: true) { fixture in
            fixture.serve("/a")
            let request = try fixture.request("/a")
            for _ in 0..<2 { _ = try await fixture.pipeline.picture(for: request) }
            #expect(fixture.pipeline.statistics.decoded == 1)
            #expect(fixture.pipeline.statistics.memoryHits == 1)
        }
    }

    @Test("Decoded pictures stay within the memory limit of the cache")
    func limit() async throws {
        try await ImageFixture.run(memoryLimit: 20_000) { fixture in
            for number in 0..<100 {
                fixture.serve("/\(number)")
                _ = try await fixture.pipeline.picture(for: fixture.request("/\(number)"))
            }
            let kept = try (0..<100).count {
                try fixture.pipeline.cachedPicture(for: fixture.request("/\($0)")) != nil
            }
            #expect((1...20).contains(kept), "\(kept)")
        }
    }

    @Test(
        "A size keeps the proportions, and never enlarges",
        arguments: [
            (ImageSize(width: 100, height: 100), 400, 200, 100, 50),
            (ImageSize(width: 100, height: 100, mode: .fill), 400, 200, 200, 100),
            (ImageSize(width: 1000, height: 1000), 400, 200, 400, 200),
            (ImageSize(width: 0, height: -5), 400, 200, 1, 1),
        ]
    )
    func scaled(size: ImageSize, width: Int, height: Int, wide: Int, high: Int) {
        #expect(size.scaled(width: width, height: height) == (wide, high))
    }
}
