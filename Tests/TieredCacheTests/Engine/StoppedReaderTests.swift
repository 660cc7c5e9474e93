import FoundationEssentials
import HTTPTypes
import TestParts
import Testing
import TieredCacheTesting

@testable import TieredCache

/// Invariant 12: a consumer that has stopped reading holds no slot.
@Suite(.tags(.realTime), .timeLimit(.minutes(10)))
struct StoppedReaderTests {
    @Test("One that reads a little now and then of what is not stored holds no slot meanwhile")
    func slowReaders() async throws {
        let piece = [UInt8](repeating: 7, count: 64 << 10)
        try await RelayFixture.run {
            $0.maximumDownloads = 1
        } _: { fixture in
            let fields: HTTPFields = [.cacheControl: "no-store"]
            let film = ScriptedResponse(
                status: 200,
                fields: fields,
                steps: Array(repeating: .bytes(piece), count: 64)
            )
            let page = ScriptedResponse(status: 200, fields: fields, steps: [.bytes([1, 2, 3])])
            fixture.prepare(film, page)
            let url = "http://origin.example/"
            let reading = try await fixture.cache.response(for: CacheRequest(url + "film"))
            async let other = fixture.cache.data(for: CacheRequest(url + "page"))
            var count = 0
            for round in 1...3 {
                // The buffer is full, and the transfer has one piece more in its hands.
                let full = WindowBody.capacity + round * piece.count
                await fixture.transport.waitForBytesPulled(full)
                // The transfer's patience with its reader.
                await fixture.time.waitForSleeper(within: .seconds(1))
                fixture.time.advance(by: .milliseconds(900))
                count += try #require(try await reading.body.source.next()).count
            }
            // No second passes without a byte being read, and yet the other one gets its turn.
            #expect(try await other.count == 3)
            count += try await reading.body.collect().count
            #expect(count == 64 * piece.count)
            #expect(fixture.transport.requests.map(\.head.path) == ["/film", "/page"])
        }
    }

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
            let isStored = cacheControl != "no-store"
            // What passes waits before the buffer is full, so that the reader leaves it no room
            // only after its first piece.
            let start: Int64 = isStored ? 24 << 20 : 64 << 10
            fixture.origin.serve("/film", film, .first(1, .wait(for: gate, after: start)))
            fixture.origin.serve("/page", .generated(length: 1000, cacheControl: cacheControl))
            let time = ManualTimeSource(wall: SystemTimeSource().wallTime())
            let change = { (configuration: inout MediaCache.Configuration) in
                configuration.maximumDownloads = 1
                configuration.timeSource = time
            }
            try await fixture.withCache(change) { cache in
                let reading = try await cache.response(for: fixture.request("/film"))
                var bytes = try #require(try await reading.body.source.next())
                async let page = cache.data(for: fixture.request("/page"))
                if isStored {
                    time.advance(by: .seconds(3))
                    gate.open()
                } else {
                    gate.open()
                    // The patience of the transfer whose reader leaves it no room.
                    await time.waitForSleeper(within: .seconds(1))
                    time.advance(by: .seconds(3))
                }
                #expect(try await page.count == 1000)
                #expect(cache.engine.transfers.queue.snapshot().count(.stalled) == 1)
                bytes.append(try await reading.body.collect())
                #expect(firstDifference(bytes, film.allBytes) == nil)
            }
        }
    }

    @Test("A reader in need of what a stopped reader's transfer brings has it go on")
    func othersGoOn() async throws {
        try await CacheFixture.run { fixture in
            let film = OriginResource.generated(length: 48 << 20, cacheControl: "max-age=60")
            let gate = OriginGate()
            fixture.origin.serve("/film", film, .first(1, .wait(for: gate, after: 24 << 20)))
            fixture.origin.serve("/page", .generated(length: 1000))
            let time = ManualTimeSource(wall: SystemTimeSource().wallTime())
            let change = { (configuration: inout MediaCache.Configuration) in
                configuration.maximumDownloads = 1
                configuration.timeSource = time
            }
            try await fixture.withCache(change) { cache in
                let request = try fixture.request("/film")
                let stopped = try await cache.response(for: request)
                _ = try await stopped.body.source.next()
                async let page = cache.data(for: fixture.request("/page"))
                time.advance(by: .seconds(3))
                gate.open()
                #expect(try await page.count == 1000)
                let queue = cache.engine.transfers.queue
                #expect(queue.snapshot().transfers.map(\.state) == [.stalled])
                let offset = try #require(queue.known.first).position
                let reader = try await cache.reader(for: request)
                let bytes = try await reader.bytes(at: offset, count: 100_000)
                #expect(firstDifference(bytes, film.bytes(offset..<offset + 100_000)) == nil)
                #expect(fixture.origin.log.exchanges.map(\.path) == ["/film", "/page"])
                withExtendedLifetime(stopped) {}
            }
        }
    }
}
