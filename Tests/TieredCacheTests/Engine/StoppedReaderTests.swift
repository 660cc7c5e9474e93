import FoundationEssentials
import Testing
import TieredCacheTesting

@testable import TieredCache

/// Invariant 12: a consumer that has stopped reading holds no slot.
@Suite(.timeLimit(.minutes(10)))
struct StoppedReaderTests {
    @Test(
        "One that has stopped gives its slot up and goes on where it was",
        arguments: [
            "max-age=60", "no-store",
        ]
    )
    func slotsAreForReaders(_ cacheControl: String) async throws {
        try await CacheFixture.run { fixture in
            let film = OriginResource.generated(length: 48 << 20, cacheControl: cacheControl)
            let gate = OriginGate()
            fixture.origin.serve("/film", film, .first(1, .wait(for: gate, after: 24 << 20)))
            fixture.origin.serve("/page", .generated(length: 1000, cacheControl: cacheControl))
            let time = ManualTimeSource(wall: SystemTimeSource().wallTime())
            let change = { (configuration: inout Configuration) in
                configuration.maximumDownloads = 1
                configuration.timeSource = time
            }
            try await fixture.withCache(change) { cache in
                let reading = try await cache.response(for: fixture.request("/film"))
                var bytes = try #require(try await reading.body.source.next())
                async let page = cache.data(for: fixture.request("/page"))
                if cacheControl == "no-store" {
                    // The watchdog, and the flight whose reader leaves it no room.
                    await time.waitForSleepers(2)
                }
                time.advance(by: .seconds(3))
                gate.open()
                #expect(try await page.count == 1000)
                #expect(cache.engine.queue.snapshot().count(.stalled) == 1)
                bytes.append(try await reading.body.collect())
                #expect(bytes == film.allBytes)
            }
        }
    }
}
