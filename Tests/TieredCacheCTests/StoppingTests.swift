import CTieredCache
import Glibc
import HTTPTypes
import TestParts
import Testing
import TieredCache
import TieredCacheTesting

@testable import TieredCacheC

/// Cancel, interrupt and release, while other threads wait for an origin that says nothing.
///
/// The streams have no deadline: a call that returns was stopped.
@Suite(.tags(.realTime), .timeLimit(.minutes(5)))
struct StoppingTests {
    enum Waiting: CaseIterable {
        case prepare, open, read, readFull

        var isOfOpenStream: Bool { self == .read || self == .readFull }
    }

    enum Stop: CaseIterable {
        case cancel, interrupt, release

        var status: Int64 {
            (self == .interrupt ? TIERED_E_INTERRUPTED : TIERED_E_CANCELLED).number
        }

        func callAsFunction(_ stream: StreamHandle) {
            switch self {
            case .cancel: tiered_cancel(stream.pointer)
            case .interrupt: tiered_interrupt(stream.pointer)
            case .release: stream.release()
            }
        }
    }

    private func wait(_ waiting: Waiting, _ stream: StreamHandle) -> Int64 {
        switch waiting {
        case .prepare: Int64(tiered_stream_prepare(stream.pointer))
        case .open: stream.read(10).result
        case .read: stream.read(at: 700_000, 10).result
        case .readFull: stream.readFull(at: 600_000, 300_000).result
        }
    }

    /// An origin that begins to answer, if the stream is to be open, and then says nothing.
    private func serve(_ fixture: HostedFixture, _ waiting: Waiting, stored: Bool) -> OriginGate {
        let gate = OriginGate()
        var film = HostedFixture.film
        if !stored { film.fields[.cacheControl] = "no-store" }
        let silent = OriginBehaviour.faithful.with { $0.gate = gate }
        switch waiting {
        case .prepare, .open:
            fixture.origin.serve("/film", film, OriginScript(silent))
        case .read, .readFull:
            let begun = OriginBehaviour.wait(for: gate, after: 200_000)
            fixture.origin.serve("/film", film, .first(1, begun).then(silent))
        }
        return gate
    }

    @Test(
        "A stop ends each call that waits, with a status of its own",
        arguments: Waiting.allCases.flatMap { waiting in
            Stop.allCases.flatMap { stop in [true, false].map { (waiting, stop, $0) } }
        }
    )
    func stops(_ waiting: Waiting, _ stop: Stop, _ stored: Bool) async throws {
        try await HostedFixture.withCache { fixture, cache in
            let gate = serve(fixture, waiting, stored: stored)
            let stream = cache.stream(fixture.origin.url("/film")) { $0.deadline_ms = -1 }
            if waiting.isOfOpenStream {
                #expect(await fixture.host { stream.read(10) }.result == 10)
            }
            let exchanges = fixture.origin.log.exchanges.count
            async let result = fixture.host { wait(waiting, stream) }
            if !waiting.isOfOpenStream {
                await fixture.origin.waitUntil { $0.exchanges.count > exchanges }
            }
            stop(stream)
            // A call that comes after the last release finds no handle.
            let isLate = await result == TIERED_E_INVALID.number && stop == .release
            #expect(await result == stop.status || isLate && waiting.isOfOpenStream)
            #expect(wait(waiting, stream) == (stop == .release ? -1 : stop.status))
            gate.open()
            if stop == .interrupt {
                tiered_resume(stream.pointer)
                #expect(await fixture.host { stream.read(at: 0, 10) }.result > 0)
            }
            if stop != .release { stream.release() }
        }
    }

    @Test("Bytes are the right ones after any number of interruptions", arguments: [true, false])
    func goesOn(_ isStored: Bool) async throws {
        try await HostedFixture.withCache { fixture, cache in
            var film = HostedFixture.film
            if !isStored { film.fields[.cacheControl] = "no-store" }
            let slow = OriginBehaviour.throttled(bytesPerSecond: 3 << 20)
            fixture.origin.serve("/film", film, OriginScript(slow))
            let stream = cache.stream(fixture.origin.url("/film"))
            // Every fourth call is interrupted; the others bring the reader on.
            let isDone = Guarded(false)
            let calls = Guarded(0)
            async let interruptions: Void = fixture.host {
                var last = 0
                while !isDone.withLock({ $0 }) {
                    let count = calls.withLock { $0 }
                    guard count > last + 3 else {
                        sched_yield()
                        continue
                    }
                    last = count
                    tiered_interrupt(stream.pointer)
                    tiered_resume(stream.pointer)
                }
            }
            let all = await fixture.host { () -> [UInt8] in
                var all: [UInt8] = []
                while true {
                    calls.withLock { $0 += 1 }
                    let got = all.count.isMultiple(of: 2) ? stream.read(7777) : stream.tryRead(7777)
                    if got.result == TIERED_E_AGAIN.number {
                        _ = stream.isReadable(waits: true)
                    } else if got.result != TIERED_E_INTERRUPTED.number {
                        guard got.result > 0 else { return all }
                        all += got.bytes
                    }
                }
            }
            isDone.withLock { $0 = true }
            await interruptions
            #expect(firstDifference(all, film.bytes(0..<HostedFixture.length)) == nil)
            stream.release()
        }
    }

    @Test("A stream that was cancelled before it is opened asks nobody")
    func cancelBeforeOpening() async throws {
        try await HostedFixture.withCache { fixture, cache in
            fixture.origin.serve("/film", HostedFixture.film)
            let stream = cache.stream(fixture.origin.url("/film"))
            tiered_interrupt(stream.pointer)
            #expect(stream.read(1).result == TIERED_E_INTERRUPTED.number)
            #expect(stream.tryRead(1).result == TIERED_E_INTERRUPTED.number)
            tiered_cancel(stream.pointer)
            #expect(stream.read(1).result == TIERED_E_CANCELLED.number)
            tiered_resume(stream.pointer)
            #expect(stream.tryRead(1).result == TIERED_E_CANCELLED.number)
            #expect(tiered_stream_prepare(stream.pointer) == TIERED_E_CANCELLED.status)
            #expect(stream.error.result == TIERED_E_CANCELLED.number)
            #expect(fixture.origin.log.exchanges.isEmpty)
            stream.release()
        }
    }

    @Test("A cache is open as long as a stream holds it, and can be opened again at once")
    func cacheBeforeStream() async throws {
        try await HostedFixture.run { fixture in
            fixture.origin.serve("/film", HostedFixture.film)
            let cache = await fixture.host { fixture.open() }
            let stream = cache.stream(fixture.origin.url("/film"))
            let again = await fixture.host { fixture.open() }
            #expect(again.pointer != nil && again.pointer != cache.pointer)
            await fixture.host {
                cache.release()
                again.release()
            }
            #expect(tiered_storage_status(cache.pointer, nil, 0) == TIERED_E_INVALID.status)
            let all = await fixture.host { stream.all() }
            #expect(all.result == 0 && Int64(all.bytes.count) == HostedFixture.length)
            stream.release()
            let later = await fixture.host { fixture.open() }
            let exchanges = fixture.origin.log.exchanges.count
            let warm = later.stream(fixture.origin.url("/film"))
            #expect(tiered_storage_status(later.pointer, nil, 0) == 0)
            #expect(await fixture.host { warm.all() }.bytes.count == Int(HostedFixture.length))
            #expect(fixture.origin.log.exchanges.count == exchanges)
            await fixture.host {
                later.release()
                warm.release()
            }
        }
    }

    @Test("A handle is counted, and unknown after its last release")
    func counting() async throws {
        try await HostedFixture.withCache { fixture, cache in
            fixture.origin.serve("/film", HostedFixture.film)
            let stream = cache.stream(fixture.origin.url("/film"))
            #expect(tiered_stream_retain(stream.pointer) == stream.pointer)
            stream.release()
            #expect(await fixture.host { stream.read(10) }.result == 10)
            stream.release()
            #expect(stream.read(10).result == TIERED_E_INVALID.number)
            #expect(tiered_stream_retain(stream.pointer) == nil)
            stream.release()
            tiered_cancel(stream.pointer)
            #expect(!tiered_is_seekable(stream.pointer))
            #expect(tiered_cache_retain(cache.pointer) == cache.pointer)
            cache.release()
            #expect(tiered_storage_status(cache.pointer, nil, 0) == 0)
        }
    }
}
