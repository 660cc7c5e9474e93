import FoundationEssentials
import HTTPCaching
import SystemPackage
import Testing
import TieredCacheTesting

@_spi(Benchmarks) @testable import TieredCache

/// Row 27: the end of a comparison, and what goes on beside it.
@Suite("The end of a comparison", .timeLimit(.minutes(1)))
struct BodyConclusionTests {
    private typealias Fixture = DigestFixture

    private let fixture = DigestFixture()
    private var time: ManualTimeSource { fixture.time }

    @Test("a part of a long body does not wait for a comparison of the whole")
    func part() async throws {
        let body = Data(repeating: 5, count: 9 << 20)
        let holdup = Fixture.Holdup()
        let transport = ScriptedTransport(
            [try fixture.answer(body, promising: body)],
            time: time
        )
        let disk = WatchedFileSystem(InMemoryFileSystem(time: time)) { call, _ in
            if call == .read, transport.requests.count > 0 { holdup.hold() }
        }
        try await fixture.withCache(disk, transport) { cache in
            let reading = Task { try await cache.response(for: fixture.request()).body.collect() }
            _ = await holdup.isReached.wait()
            var part = try fixture.request()
            part.range = .bounded(100..<1100)
            let bytes = try await cache.response(for: part).body.collect()
            #expect(bytes.count == 1000)
            holdup.readerMayEnd()
            holdup.readerHasEnded()
            #expect(try await reading.value.count == body.count)
        }
    }
}
