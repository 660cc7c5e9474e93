import HTTPCaching
import TestParts
import Testing
import TieredCacheTesting

@testable import TieredCache

/// Invariant 12 seen from the origin.
@Suite(.tags(.realTime), .timeLimit(.minutes(10)))
struct SixSlotsTests {
    @Test("Thirty wait: six are busy")
    func busy() async throws {
        try await CacheFixture.run { fixture in
            // No response ends before six are open. How many the origin sees open later depends on
            // when it notices an end, so that the limit itself is for the queue's own tests.
            let gate = OriginGate()
            let stored = OriginBehaviour.wait(for: gate, after: 1000)
            var requests: [CacheRequest] = []
            for index in 0..<30 {
                let film = OriginResource.generated(length: 200_000, seed: UInt64(index))
                fixture.origin.serve("/\(index)", film, OriginScript(stored))
                requests.append(try fixture.request("/\(index)"))
            }
            let all = requests
            try await fixture.withCache { cache in
                let batch = try await cache.downloads.start(all)
                await fixture.origin.waitUntil { $0.openResponses == 6 }
                #expect(cache.engine.transfers.queue.snapshot().slotsInUse == 6)
                #expect(batch.downloads.count { $0.status.state.isEnd } == 0)
                gate.open()
                let status = await batch.wait()
                #expect(status.finished == 30)
            }
            let log = fixture.origin.log
            #expect(log.exchanges.count == 30)
            #expect(log.openResponsesHighWaterMark >= 6)
        }
    }
}
