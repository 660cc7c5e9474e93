import CTieredCache
import Glibc
import HTTPTypes
import TestParts
import Testing
import TieredCache
import TieredCacheTesting

@testable import TieredCacheC

/// What a player does with a stream.
@Suite(.tags(.realTime), .timeLimit(.minutes(5)))
struct ReadingTests {
    private static let length = HostedFixture.length

    private func expected(_ range: Range<Int64>) -> [UInt8] { HostedFixture.film.bytes(range) }

    @Test("It reads, seeks, tells size and fields, and ends with 0; again without the origin")
    func reads() async throws {
        try await HostedFixture.run { fixture in
            fixture.origin.serve("/film", HostedFixture.film)
            for isWarm in [false, true] {
                let before = fixture.origin.log.exchanges.count
                let cache = await fixture.host { fixture.open() }
                let stream = cache.stream(fixture.origin.url("/film"))
                #expect(stream.status == 0)
                #expect(fixture.origin.log.exchanges.count == before)
                #expect(tiered_size(stream.pointer) == TIERED_E_UNKNOWN.number)
                #expect(!tiered_is_seekable(stream.pointer))
                #expect(tiered_stream_http_status(stream.pointer) == TIERED_E_UNKNOWN.status)
                #expect(stream.field("Content-Type").result == TIERED_E_UNKNOWN.number)
                #expect(tiered_seek(stream.pointer, 0, SEEK_END) == TIERED_E_UNKNOWN.number)
                #expect(stream.stored.isEmpty)
                #expect(await fixture.host { tiered_stream_prepare(stream.pointer) } == 0)
                #expect(tiered_size(stream.pointer) == Self.length)
                #expect(tiered_is_seekable(stream.pointer))
                #expect(tiered_stream_http_status(stream.pointer) == 200)
                #expect(stream.field("content-type").text == "application/octet-stream")
                #expect(stream.field("X-None").result == TIERED_E_NOT_FOUND.number)
                try await reading(stream, fixture)
                #expect(stream.error.result == 0 && stream.error.text.isEmpty)
                await fixture.host {
                    stream.release()
                    cache.release()
                }
                if isWarm { #expect(fixture.origin.log.exchanges.count == before) }
            }
        }
    }

    private func reading(_ stream: StreamHandle, _ fixture: HostedFixture) async throws {
        let middle = await fixture.host { stream.readFull(at: 300_000, 200_000) }
        #expect(middle.result == 200_000)
        #expect(firstDifference(middle.bytes, expected(300_000..<500_000)) == nil)
        #expect(tiered_seek(stream.pointer, 0, SEEK_CUR) == 0)
        let all = await fixture.host { stream.all() }
        #expect(all.result == 0)
        #expect(firstDifference(all.bytes, expected(0..<Self.length)) == nil)
        #expect(stream.stored == [0..<Self.length])
        let end = await fixture.host { stream.readFull(at: Self.length - 10, 100) }
        #expect(firstDifference(end.bytes, expected(Self.length - 10..<Self.length)) == nil)
        #expect(await fixture.host { stream.readFull(at: Self.length, 1) }.result == 0)
        let one = await fixture.host { stream.read(at: 7, 1) }
        #expect(one == StreamHandle.Got(result: 1, bytes: expected(7..<8)))
        seeking(stream)
    }

    private func seeking(_ stream: StreamHandle) {
        let (size, force) = (CInt(TIERED_SEEK_SIZE), CInt(0x20000))
        #expect(tiered_seek(stream.pointer, 0, SEEK_CUR) == Self.length)
        #expect(tiered_seek(stream.pointer, 5, SEEK_SET) == 5)
        #expect(tiered_seek(stream.pointer, 10, SEEK_CUR | force) == 15)
        #expect(tiered_seek(stream.pointer, -5, SEEK_END) == Self.length - 5)
        #expect(tiered_seek(stream.pointer, 0, size) == Self.length)
        #expect(tiered_seek(stream.pointer, 99, size | force) == Self.length)
        #expect(tiered_seek(stream.pointer, 0, SEEK_CUR) == Self.length - 5)
        for (offset, whence) in [
            (-1, SEEK_SET), (Self.length + 1, SEEK_SET), (6, SEEK_CUR), (.max, SEEK_END),
            (.min, SEEK_CUR), (0, 3), (0, -1),
        ] {
            #expect(tiered_seek(stream.pointer, offset, whence) == TIERED_E_INVALID.number)
        }
        #expect(tiered_seek(stream.pointer, 0, SEEK_SET) == 0)
    }

    @Test("A size that the origin does not say becomes known at the end")
    func unknownSize() async throws {
        try await HostedFixture.withCache { fixture, cache in
            var film = HostedFixture.film
            film.framing = .chunked
            fixture.origin.serve("/film", film)
            let stream = cache.stream(fixture.origin.url("/film"))
            let first = await fixture.host { stream.read(10) }
            #expect(first == StreamHandle.Got(result: 10, bytes: expected(0..<10)))
            let all = await fixture.host { stream.all() }
            #expect(all.result == 0)
            #expect(firstDifference(all.bytes, expected(10..<Self.length)) == nil)
            #expect(tiered_size(stream.pointer) == Self.length)
            stream.release()
        }
    }

    @Test("What fails is told as status, as text and as status of HTTP, and is no end")
    func failures() async throws {
        try await HostedFixture.withCache { fixture, cache in
            fixture.origin.serve("/broken", HostedFixture.film, OriginScript(.dropped()))
            let cases: [(StreamHandle, tiered_status, CInt)] = [
                (cache.stream(fixture.origin.url("/none")), TIERED_E_HTTP, 404),
                (
                    cache.stream(fixture.origin.url("/broken")) { $0.deadline_ms = 300 },
                    TIERED_E_TIMEOUT, TIERED_E_UNKNOWN.status
                ),
                (
                    cache.stream(fixture.origin.url("/film")) {
                        $0.flags = UInt32(TIERED_CACHE_ONLY)
                    },
                    TIERED_E_NOT_CACHED, TIERED_E_UNKNOWN.status
                ),
            ]
            for (stream, status, http) in cases {
                #expect(await fixture.host { stream.read(1) }.result == status.number)
                #expect(stream.error.result == status.number)
                #expect(!stream.error.text.isEmpty)
                #expect(tiered_stream_http_status(stream.pointer) == http)
                stream.release()
            }
        }
    }

    @Test(
        "A changed representation is an error where a byte is missing; a new stream has the new one"
    )
    func changed() async throws {
        try await HostedFixture.withCache { fixture, cache in
            let film = OriginResource.generated(length: 8 << 20, cacheControl: "max-age=600")
            fixture.origin.serve("/film", film)
            let stream = cache.stream(fixture.origin.url("/film")) { $0.read_ahead = -1 }
            #expect(await fixture.host { stream.read(10) }.result == 10)
            fixture.origin.update("/film") { $0.version = 2 }
            let far = await fixture.host { stream.read(at: 7 << 20, 10) }
            #expect(far.result == TIERED_E_CHANGED.number)
            let next = cache.stream(fixture.origin.url("/film")) {
                $0.flags = UInt32(TIERED_RELOAD)
            }
            let new = await fixture.host { next.read(10) }
            #expect(new.bytes == film.bodyOfVersion(2)?.bytes(in: 0..<10))
            stream.release()
            next.release()
        }
    }

    @Test("Fields go to the origin, a key names the entry, and RELOAD asks again")
    func requests() async throws {
        try await HostedFixture.withCache { fixture, cache in
            for name in ["/a", "/b"] { fixture.origin.serve(name, HostedFixture.film) }
            let (first, second) = ("X-One: 1", "X-Two:  two words")
            let read = { (path: String, flags: Int) in
                await fixture.host {
                    first.withCString { first in
                        second.withCString { second in
                            "film".withCString { key in
                                let lines: [UnsafePointer<CChar>?] = [first, second, nil]
                                return lines.withUnsafeBufferPointer { lines in
                                    let stream = cache.stream(fixture.origin.url(path)) {
                                        $0.key = key
                                        $0.fields = lines.baseAddress
                                        $0.flags = UInt32(flags)
                                    }
                                    defer { stream.release() }
                                    return stream.all().bytes.count
                                }
                            }
                        }
                    }
                }
            }
            #expect(await read("/a", TIERED_PIN | TIERED_BACKGROUND) == Int(Self.length))
            let asked = fixture.origin.log.exchanges(for: "/a").first
            #expect(
                asked?.fields.contains { $0.name.rawName == "X-One" && $0.value == "1" } == true
            )
            #expect(asked?.fields.contains { $0.value == "two words" } == true)
            #expect(await read("/b", TIERED_CACHE_ONLY) == Int(Self.length))
            #expect(fixture.origin.log.exchanges(for: "/b").isEmpty)
            #expect(await read("/b", TIERED_RELOAD | TIERED_NOT_METERED) == Int(Self.length))
            #expect(!fixture.origin.log.exchanges(for: "/b").isEmpty)
        }
    }
}

extension OriginResource {
    func bytes(_ range: Range<Int64>) -> [UInt8] { generatedBody?.bytes(in: range) ?? [] }
}
