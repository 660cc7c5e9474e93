import CTieredCache
import Glibc
import TestParts
import Testing
import TieredCache
import TieredCacheTesting

@testable import TieredCacheC

/// Opening, reading, seeking, stopping and releasing at once, in an order that chance decides.
///
/// `TIEREDCACHE_RACES` is the number of rounds; without it 200, or a few where not all cases run.
@Suite(.tags(.realTime), .timeLimit(.minutes(20)))
struct RaceTests {
    private static let rounds =
        getenv("TIEREDCACHE_RACES").flatMap { Int(String(cString: $0)) }
        ?? (TestCases.all ? 200 : 20)

    /// What a thread may do with a stream.
    private static let steps: [@Sendable (StreamHandle, inout SplitMix) -> Void] = [
        { stream, _ in _ = tiered_stream_prepare(stream.pointer) },
        { stream, _ in _ = stream.read(5000) },
        { stream, random in _ = stream.read(at: Int64(random.next() % 1_100_000), 70_000) },
        { stream, random in _ = stream.readFull(at: Int64(random.next() % 1_100_000), 90_000) },
        { stream, _ in _ = stream.tryRead(5000) },
        { stream, random in
            _ = tiered_seek(stream.pointer, Int64(random.next() % 1_100_000), SEEK_SET)
        },
        { stream, _ in _ = stream.isReadable() },
        { stream, _ in _ = stream.stored },
        { stream, _ in _ = (tiered_size(stream.pointer), tiered_is_seekable(stream.pointer)) },
        { stream, _ in _ = stream.error },
        { stream, _ in tiered_interrupt(stream.pointer) },
        { stream, _ in tiered_resume(stream.pointer) },
    ]

    private struct SplitMix {
        var state: UInt64

        mutating func next() -> UInt64 {
            state &+= 0x9E37_79B9_7F4A_7C15
            var word = state
            word = (word ^ word >> 30) &* 0xBF58_476D_1CE4_E5B9
            word = (word ^ word >> 27) &* 0x94D0_49BB_1331_11EB
            return word ^ word >> 31
        }
    }

    /// What ends first: the calls by a cancel, the cache, or the stream in a thread that reads.
    enum Order: UInt64, CaseIterable { case cancel, cache, reader }

    @Test(
        "No order of calls crashes, hangs or gives wrong bytes",
        .tags(.seeded),
        arguments: Order.allCases
    )
    func races(_ order: Order) async throws {
        try await HostedFixture.run { fixture in
            let stalled = OriginBehaviour.stall(after: 300_000)
            fixture.origin.serve("/film", HostedFixture.film, .first(1, .faithful).then(stalled))
            fixture.origin.serve("/silent", HostedFixture.film, OriginScript(stalled))
            let seed = UInt64.random(in: 0 ... .max)
            for round in 0..<UInt64(Self.rounds) {
                let path = round.isMultiple(of: 3) ? "/silent" : "/film"
                await self.round(fixture, path, order, seed: seed &+ round &* 8)
            }
            let last = await fixture.host { fixture.open() }
            #expect(last.pointer != nil, "seed \(seed)")
            await fixture.host { last.release() }
        }
    }

    private func round(
        _ fixture: HostedFixture,
        _ path: String,
        _ order: Order,
        seed: UInt64
    ) async {
        let cache = await fixture.host { fixture.open() }
        let stream = cache.stream(fixture.origin.url(path)) { $0.deadline_ms = -1 }
        await withTaskGroup { group in
            for number in 0..<2 as Range<UInt64> {
                group.addTask {
                    await fixture.host {
                        var random = SplitMix(state: seed &+ number)
                        for _ in 0..<6 {
                            Self.steps[Int(random.next() % UInt64(Self.steps.count))](
                                stream,
                                &random
                            )
                        }
                        if order == .reader, number == 0 { stream.release() }
                    }
                }
            }
            group.addTask {
                await fixture.host {
                    var random = SplitMix(state: seed &+ 2)
                    for _ in 0..<random.next() % 5 { sched_yield() }
                    // Without it the others would wait for the silent origin.
                    if order != .cache { tiered_cancel(stream.pointer) }
                    if order == .cache { cache.release() }
                    if order != .reader { stream.release() }
                }
            }
        }
        stream.release()
        await fixture.host { cache.release() }
    }
}
