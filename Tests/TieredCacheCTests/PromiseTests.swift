import CTieredCache
import Glibc
import SystemPackage
import TestParts
import Testing
import TieredCache
import TieredCacheTesting

@testable import TieredCacheC

/// What docs/players.md promises of readers, through the functions for C.
@Suite(.tags(.realTime), .timeLimit(.minutes(5)))
struct PromiseTests {
    private static let length = HostedFixture.length
    private let expected = HostedFixture.film.bytes(0..<HostedFixture.length)

    @Test("Blocks that were damaged on disk are fetched again, and no reader gets them")
    func damage() async throws {
        try await HostedFixture.run { fixture in
            fixture.origin.serve("/film", HostedFixture.film)
            let url = fixture.origin.url("/film")
            // Too little memory for the film: it comes from the disk.
            let open = { @Sendable in fixture.open { $0.memory_limit = 1 << 16 } }
            let file = await fixture.host { () -> String in
                let cache = open()
                defer { cache.release() }
                let stream = cache.stream(url)
                #expect(stream.all().bytes == expected)
                stream.release()
                return text { tiered_file_path(cache.pointer, url, nil, $0, $1) }.text
            }
            try flip(file, at: [0, 300_000, Self.length - 1])
            let sent = fixture.origin.log.bodyBytesWritten(for: "/film")
            await fixture.host {
                let cache = open()
                let stream = cache.stream(url)
                #expect(firstDifference(stream.all().bytes, expected) == nil)
                #expect(cache.statistics.blocks_damaged > 0)
                stream.release()
                cache.release()
            }
            let more = fixture.origin.log.bodyBytesWritten(for: "/film") - sent
            #expect(more > 0 && more < Self.length)
        }
    }

    private func flip(_ file: String, at offsets: [Int64]) throws {
        let descriptor = try FileDescriptor.open(FilePath(file), .readWrite)
        try descriptor.closeAfter {
            for offset in offsets {
                var byte: UInt8 = 0
                try withUnsafeMutableBytes(of: &byte) {
                    _ = try descriptor.read(fromAbsoluteOffset: offset, into: $0)
                }
                try descriptor.writeAll(toAbsoluteOffset: offset, [~byte])
            }
        }
    }

    @Test("Of ten films at once six are asked for, and the others as soon as one has ended")
    func six() async throws {
        try await HostedFixture.withCache { fixture, cache in
            let gate = OriginGate()
            for number in 0..<10 {
                fixture.origin.serve(
                    "/\(number)",
                    HostedFixture.film,
                    OriginScript(.wait(for: gate, after: 10_000))
                )
            }
            let films = (0..<10).map { cache.stream(fixture.origin.url("/\($0)")) }
            // Each begins at the first try; the loop of the host would wait for its descriptor.
            await fixture.host { for film in films { _ = film.tryRead(1) } }
            await fixture.host {
                while fixture.origin.log.openResponsesHighWaterMark < 6 { sched_yield() }
            }
            #expect(cache.statistics.downloads_started == 6)
            gate.open()
            for film in films {
                let all = await fixture.host { waitingForAll(film) }
                #expect(firstDifference(all, expected) == nil)
                film.release()
            }
            #expect(fixture.origin.log.openResponsesHighWaterMark == 6)
        }
    }

    private func waitingForAll(_ film: StreamHandle) -> [UInt8] {
        tiered_seek(film.pointer, 0, SEEK_SET)
        return film.all().bytes
    }

    @Test(
        "A film that changes while its body comes is one generation for a stream, or an error",
        arguments: [true, false]
    )
    func oneGeneration(hasRanges: Bool) async throws {
        try await HostedFixture.withCache { fixture, cache in
            let gate = OriginGate()
            // The first answer breaks off within the body, when the film has changed.
            fixture.origin.serve(
                "/film",
                HostedFixture.film,
                .first(
                    1,
                    OriginBehaviour().with {
                        $0.interruptions = [(300_000, .wait(gate)), (400_000, .cut(.reset))]
                    }
                )
            )
            fixture.origin.update("/film") { $0.acceptsRanges = hasRanges }
            let url = fixture.origin.url("/film")
            let stream = cache.stream(url)
            let first = await fixture.host { stream.readFull(at: 0, 100_000) }
            #expect(first.bytes.elementsEqual(expected[..<100_000]))
            fixture.origin.update("/film") { $0.version = 2 }
            gate.open()
            let rest = await fixture.host {
                tiered_seek(stream.pointer, 100_000, SEEK_SET)
                return stream.all()
            }
            #expect(rest.result == TIERED_E_CHANGED.number)
            #expect(!rest.bytes.isEmpty)
            #expect(rest.bytes.elementsEqual(expected[100_000...].prefix(rest.bytes.count)))
            let next = cache.stream(url)
            let all = await fixture.host { next.all() }
            let new = try #require(HostedFixture.film.bodyOfVersion(2)?.bytes())
            #expect(firstDifference(all.bytes, new) == nil)
            stream.release()
            next.release()
        }
    }

    @Test("However many streams read a film, in whatever order, each byte comes once")
    func once() async throws {
        try await HostedFixture.withCache { fixture, cache in
            fixture.origin.serve("/film", HostedFixture.film)
            let url = fixture.origin.url("/film")
            await withTaskGroup { group in
                for number in 0..<12 as Range<Int64> {
                    group.addTask {
                        await fixture.host {
                            let stream = cache.stream(url)
                            tiered_seek(stream.pointer, 0, SEEK_SET)
                            let start = number % 4 * 200_000
                            let count = Int(Self.length - start)
                            let got = stream.readFull(at: start, count)
                            #expect(got.bytes.elementsEqual(expected[Int(start)...]))
                            stream.release()
                        }
                    }
                }
            }
            #expect(fixture.origin.log.bodyBytesWritten(for: "/film") == Self.length)
        }
    }
}
