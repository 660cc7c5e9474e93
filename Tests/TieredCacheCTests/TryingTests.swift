import CTieredCache
import Glibc
import HTTPTypes
import TestParts
import Testing
import TieredCache
import TieredCacheTesting

@testable import TieredCacheC

/// A host with an event loop: it tries, and waits for the descriptor.
@Suite(.tags(.realTime), .timeLimit(.minutes(5)))
struct TryingTests {
    private func all(_ stream: StreamHandle) -> StreamHandle.Got {
        var all = StreamHandle.Got(result: 0)
        while true {
            let next = stream.tryRead(50_000)
            if next.result == TIERED_E_AGAIN.number {
                guard stream.isReadable(waits: true) else { return all }
            } else if next.result <= 0 {
                all.result = next.result
                return all
            }
            all.bytes += next.bytes
        }
    }

    @Test("It reads all with poll, cold and warm, stored or not", arguments: [true, false])
    func reads(_ isStored: Bool) async throws {
        try await HostedFixture.withCache { fixture, cache in
            var film = HostedFixture.film
            if !isStored { film.fields[.cacheControl] = "no-store" }
            fixture.origin.serve("/film", film)
            for _ in 0..<2 {
                let stream = cache.stream(fixture.origin.url("/film"))
                #expect(stream.isReadable())
                let all = await fixture.host { self.all(stream) }
                #expect(all.result == 0)
                #expect(firstDifference(all.bytes, film.bytes(0..<HostedFixture.length)) == nil)
                #expect(stream.isReadable())
                stream.release()
            }
        }
    }

    @Test("A read after a try gets the bytes of the try", arguments: [true, false])
    func tryAndRead(_ isStored: Bool) async throws {
        try await HostedFixture.withCache { fixture, cache in
            var film = HostedFixture.film
            if !isStored { film.fields[.cacheControl] = "no-store" }
            for name in [HTTPField.Name.eTag, .lastModified] { film.fields[name] = nil }
            fixture.origin.serve("/film", film)
            let stream = cache.stream(fixture.origin.url("/film"))
            let all = await fixture.host { () -> StreamHandle.Got in
                var all = StreamHandle.Got(result: 0)
                while true {
                    var next = stream.tryRead(50_000)
                    if next.result == TIERED_E_AGAIN.number { next = stream.read(30_000) }
                    guard next.result > 0 else {
                        all.result = next.result
                        return all
                    }
                    all.bytes += next.bytes
                }
            }
            #expect(all.result == 0)
            #expect(firstDifference(all.bytes, film.bytes(0..<HostedFixture.length)) == nil)
            stream.release()
        }
    }

    @Test("An interruption loses no byte that a try has fetched")
    func interruptAfterTry() async throws {
        try await HostedFixture.withCache { fixture, cache in
            var film = HostedFixture.film
            film.fields[.cacheControl] = "no-store"
            for name in [HTTPField.Name.eTag, .lastModified] { film.fields[name] = nil }
            fixture.origin.serve("/film", film)
            let stream = cache.stream(fixture.origin.url("/film"))
            #expect(stream.tryRead(1000).result == TIERED_E_AGAIN.number)
            #expect(await fixture.host { stream.isReadable(waits: true) })
            tiered_interrupt(stream.pointer)
            #expect(stream.tryRead(1000).result == TIERED_E_INTERRUPTED.number)
            tiered_resume(stream.pointer)
            let all = await fixture.host { self.all(stream) }
            #expect(all.result == 0)
            #expect(firstDifference(all.bytes, film.bytes(0..<HostedFixture.length)) == nil)
            stream.release()
        }
    }

    @Test("The descriptor says what is so: while bytes are awaited, after a seek, after a stop")
    func descriptor() async throws {
        try await HostedFixture.withCache { fixture, cache in
            let gate = OriginGate()
            let silent = OriginBehaviour.faithful.with { $0.gate = gate }
            fixture.origin.serve("/film", HostedFixture.film, OriginScript(silent))
            let stream = cache.stream(fixture.origin.url("/film"))
            let descriptor = tiered_stream_fd(stream.pointer)
            #expect(descriptor >= 0 && tiered_stream_fd(stream.pointer) == descriptor)
            #expect(fcntl(descriptor, F_GETFD) & FD_CLOEXEC != 0)
            #expect(stream.isReadable())
            #expect(stream.tryRead(10).result == TIERED_E_AGAIN.number)
            #expect(!stream.isReadable())
            #expect(stream.tryRead(10).result == TIERED_E_AGAIN.number)
            #expect(tiered_seek(stream.pointer, 5, SEEK_SET) == 5)
            #expect(stream.isReadable())
            #expect(tiered_seek(stream.pointer, 0, SEEK_SET) == 0)
            #expect(!stream.isReadable())
            tiered_interrupt(stream.pointer)
            #expect(stream.isReadable())
            #expect(stream.tryRead(10).result == TIERED_E_INTERRUPTED.number)
            tiered_resume(stream.pointer)
            #expect(stream.tryRead(10).result == TIERED_E_AGAIN.number)
            gate.open()
            #expect(await fixture.host { stream.isReadable(waits: true) })
            let got = stream.tryRead(10)
            #expect(got == StreamHandle.Got(result: 10, bytes: HostedFixture.film.bytes(0..<10)))
            #expect(stream.isReadable())
            tiered_cancel(stream.pointer)
            #expect(stream.tryRead(10).result == TIERED_E_CANCELLED.number)
            #expect(stream.isReadable())
            stream.release()
        }
    }

    @Test("An error comes once, and the next call tries again")
    func failures() async throws {
        try await HostedFixture.withCache { fixture, cache in
            fixture.origin.serve("/film", HostedFixture.film, .first(1, .status(404)))
            let stream = cache.stream(fixture.origin.url("/film"))
            #expect(stream.tryRead(1).result == TIERED_E_AGAIN.number)
            #expect(await fixture.host { stream.isReadable(waits: true) })
            #expect(stream.tryRead(1).result == TIERED_E_HTTP.number)
            #expect(stream.error.result == TIERED_E_HTTP.number)
            #expect(tiered_stream_http_status(stream.pointer) == 404)
            let all = await fixture.host { self.all(stream) }
            #expect(all.result == 0 && Int64(all.bytes.count) == HostedFixture.length)
            stream.release()
        }
    }

    @Test("One thread serves a hundred streams")
    func hundred() async throws {
        try await HostedFixture.withCache { fixture, cache in
            fixture.origin.serve("/film", HostedFixture.film)
            let streams = (0..<100).map { _ in cache.stream(fixture.origin.url("/film")) }
            let ends = await fixture.host {
                var counts = [Int](repeating: 0, count: streams.count)
                var left = Set(streams.indices)
                while !left.isEmpty {
                    for index in left {
                        let got = streams[index].tryRead(1 << 20)
                        counts[index] += got.bytes.count
                        if got.result <= 0, got.result != TIERED_E_AGAIN.number {
                            left.remove(index)
                        }
                    }
                    var entries = left.map {
                        pollfd(
                            fd: tiered_stream_fd(streams[$0].pointer),
                            events: Int16(POLLIN),
                            revents: 0
                        )
                    }
                    if !entries.isEmpty { poll(&entries, nfds_t(entries.count), -1) }
                }
                return counts
            }
            #expect(ends.allSatisfy { $0 == Int(HostedFixture.length) })
            for stream in streams { stream.release() }
        }
    }
}
