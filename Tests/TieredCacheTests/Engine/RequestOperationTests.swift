import FoundationEssentials
import Testing
import TieredCacheTesting

@testable import TieredCache

@Suite(.timeLimit(.minutes(10)))
struct RequestOperationTests {
    @Test func aCancelBeforeTheStartWins() async throws {
        try await CacheFixture.run { fixture in
            fixture.origin.serve("/film", .generated(length: 1000))
            try await fixture.withCache { cache in
                let operation = cache.operation(for: try fixture.request("/film"))
                operation.cancel()
                operation.start()
                let error = await #expect(throws: CacheError.self) {
                    try await operation.response()
                }
                #expect(error?.code == .cancelled)
            }
            #expect(fixture.origin.log.exchanges.isEmpty)
        }
    }

    @Test func suspendedDownloadsWaitAndHitsDoNot() async throws {
        try await CacheFixture.run { fixture in
            fixture.origin.serve("/held", .generated(length: 1000, cacheControl: "max-age=60"))
            fixture.origin.serve("/film", .generated(length: 1000, cacheControl: "max-age=60"))
            try await fixture.withCache { cache in
                let stored = try fixture.request("/held")
                _ = try await cache.data(for: stored)
                cache.transfers.suspend()
                let operation = cache.operation(for: try fixture.request("/film"))
                operation.start()
                #expect(try await cache.data(for: stored).count == 1000)
                #expect(fixture.origin.log.exchanges(for: "/film").isEmpty)
                operation.priority = .playing
                cache.transfers.resume()
                let bytes = try await operation.response().body.collect()
                #expect(bytes.count == 1000)
            }
        }
    }

    @Test func cancellingAllDownloadsEndsThemAndKeepsTheCacheUsable() async throws {
        try await CacheFixture.run { fixture in
            fixture.origin.serve("/film", .generated(length: 1 << 20), .first(1, .stall(after: 0)))
            try await fixture.withCache { cache in
                let request = try fixture.request("/film")
                let answer = try await cache.response(for: request)
                cache.transfers.cancelAll()
                let error = await #expect(throws: CacheError.self) {
                    try await answer.body.collect()
                }
                #expect(error?.code == .cancelled)
                let bytes = try await cache.data(for: request)
                #expect(bytes.count == 1 << 20)
            }
        }
    }

    @Test func decodedValuesLeaveWithTheirEntry() async throws {
        try await CacheFixture.run { fixture in
            try await fixture.withCache { cache in
                let request = try fixture.request("/list")
                let lines = cache.memoryView(of: [String].self, named: "lines") { $0.count * 16 }
                try await cache.store(.init("a\nb".utf8), for: request)
                lines.insert(["a", "b"], forKey: request.key)
                #expect(lines.value(forKey: request.key) == ["a", "b"])
                try await cache.remove(request)
                #expect(lines.value(forKey: request.key) == nil)
            }
        }
    }
}
