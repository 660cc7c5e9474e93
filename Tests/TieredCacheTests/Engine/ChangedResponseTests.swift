import FoundationEssentials
import HTTPCaching
import HTTPTypes
import SystemPackage
import TestParts
import Testing
import TieredCacheTesting

@testable import TieredCache

/// What becomes of a response that contradicts what is stored.
@Suite(.tags(.realTime), .timeLimit(.minutes(10)))
struct ChangedResponseTests {
    @Test("All of another representation, sent for a range of the old one, is not asked for again")
    func wholeForRange() async throws {
        for isStreamed in [false, true] {
            try await CacheFixture.run { fixture in
                let film = OriginResource.generated(length: 600_000, cacheControl: "max-age=60")
                fixture.origin.serve("/film", film)
                try await fixture.withCache { cache in
                    let request = try fixture.request("/film")
                    var head = request
                    head.range = .bounded(0..<131_072)
                    _ = try await cache.data(for: head)
                    fixture.origin.update("/film") { $0.version = 2 }
                    let changed = try #require(fixture.origin.resource("/film")).allBytes
                    if isStreamed {
                        let bytes = try await Self.streamed(request, cache)
                        #expect(firstDifference(bytes, changed) == nil)
                    } else {
                        #expect(try await firstDifference(cache.data(for: request), changed) == nil)
                    }
                }
                let ranges = fixture.origin.log.exchanges.map { $0.fields[.range] }
                #expect(ranges.count == 2, "\(ranges)")
            }
        }
    }

    /// Reads as a player does: what has changed is opened again.
    private static func streamed(_ request: CacheRequest, _ cache: MediaCache) async throws -> Data
    {
        var changes = 0
        while true {
            do throws(CacheError) {
                let response = try await cache.streamedResponse(for: request)
                return try await response.body.collect()
            } catch {
                changes += 1
                guard error.code == .representationChanged, changes <= 3 else { throw error }
            }
        }
    }

    @Test("An origin whose parts always name a wrong length is asked for all of it, and completes")
    func wrongTotals() async throws {
        let length = 600_000
        var model = ScriptedOriginModel(length: length)
        (model.lie, model.chunkSize) = (.otherLength, 65_536)
        let whole = Data(ScriptedOriginModel.bytes(version: 1, range: 0..<length))
        for isStreamed in [false, true] {
            let transport = ScriptedTransport(time: InstantTime()) { [model] request, index in
                var model = model
                // Only the first response is cut.
                if index == 0 { model.cutAfter = 400_000 }
                return model.answer(request)
            }
            var configuration = MediaCache.Configuration(path: "/cache")
            configuration.transport = transport
            configuration.timeSource = InstantTime()
            configuration.respondsToMemoryPressure = false
            configuration.minimumFreeDisk = 0
            configuration.keepsHistory = false
            let cache = try MediaCache(configuration, fileSystem: InMemoryFileSystem())
            let request = try CacheRequest("http://origin.example/film")
            if isStreamed {
                #expect(try await firstDifference(Self.streamed(request, cache), whole) == nil)
            } else {
                #expect(try await firstDifference(cache.data(for: request), whole) == nil)
            }
            let entry = try #require(try await cache.entry(for: request))
            #expect(entry.isComplete)
            await cache.shutdown()
        }
    }
}
