import FoundationEssentials
import HTTPCaching
import HTTPTypes
import SystemPackage
import TestParts
import Testing
import TieredCacheTesting

@testable import TieredCache

/// Rows 15 to 29 of the table over real sockets: statuses, cuts, codings, and the local disk.
///
/// Row 27 is in `DownloadIntegrityTests`.
@Suite("Rows over sockets: statuses", .tags(.realTime), .timeLimit(.minutes(10)))
struct StatusRowsSocketTests {
    private var fixture = RowFixture()
    private var film: OriginResource { fixture.film }

    @Test("Row 15: R, 416 with the length that is stored: that was all")
    func row15Complete() async throws {
        var fixture = fixture
        fixture.film.framing = .chunked
        let end = fixture.head(
            "HTTP/1.1 416 Range Not Satisfiable",
            "Content-Range: bytes */131072"
        )
        let outcome = try await fixture.fetch(.cut(after: RowFixture.stored, .finish), end)
        #expect(firstDifference(outcome.data, film.allBytes.prefix(Int(RowFixture.stored))) == nil)
        #expect(outcome.ranges == [nil, "bytes=131072-"])
    }

    @Test("Row 15: R, 416 with another length: the representation changed")
    func row15Changed() async throws {
        let other = fixture.head("HTTP/1.1 416 Range Not Satisfiable", "Content-Range: bytes */9")
        let outcome = try await fixture.resume(other) { $0.version = 2 }
        outcome.expectChange(to: fixture.changed)
    }

    @Test("Row 16: R, 416 without a length is no success: all of it, once")
    func row16() async throws {
        let bare = fixture.head("HTTP/1.1 416 Range Not Satisfiable")
        try await fixture.resume(bare).expectRestart(film)
    }

    @Test("Row 17: S, 412: the segment is given up, and the body is whole all the same")
    func row17() async throws {
        let outcome = try await SegmentFixture.run(.status(412))
        #expect(outcome.isWhole)
        #expect(outcome.exchanges[1].fields[.ifMatch] != nil)
        #expect(outcome.exchanges[1].status == 412)
    }

    @Test("Row 18: 304 freshens what is stored; for another tag all of it is fetched")
    func row18() async throws {
        for tag in [film.entityTagValue ?? "", "\"other\""] {
            try await CacheFixture.run { fixture in
                var stale = film
                stale.fields[.cacheControl] = "no-cache"
                let answer = OriginBehaviour.raw(
                    "HTTP/1.1 304 Not Modified\r\nETag: \(tag)\r\n\r\n"
                )
                fixture.origin.serve(
                    "/film",
                    stale,
                    OriginScript.first(1, .faithful).then(1, answer)
                )
                let request = try fixture.request("/film")
                try await fixture.withCache { cache in
                    for _ in 0..<2 {
                        let data = try await cache.data(for: request)
                        #expect(firstDifference(data, stale.allBytes) == nil)
                    }
                }
                let exchanges = fixture.origin.log.exchanges
                #expect(exchanges[1].fields[.ifNoneMatch] == film.entityTagValue)
                #expect(exchanges.count == (tag == film.entityTagValue ? 2 : 3))
            }
        }
    }

    @Test("Row 19: a redirect is followed with range and validator")
    func row19() async throws {
        let outcome = try await fixture.resume(.redirect(to: "/film", status: 307))
        // To itself is a circle; it ends at once.
        #expect(outcome.error?.code == .originFailed)
        let away = try await fixture.resume(.redirect(to: "/film?again", status: 302))
        away.expectFilm(film, requests: 2)
        // Elsewhere some of what is stored has to come again.
        #expect(away.ranges == ["bytes=131072-399999", "bytes=65536-399999"])
        #expect(away.exchanges.allSatisfy { $0.fields[.ifRange] == film.entityTagValue })
    }

    @Test("Row 20: 401 and 403 fail, and what is stored stays", arguments: [401, 403])
    func row20(status: Int) async throws {
        let outcome = try await fixture.resume(.status(status))
        #expect(outcome.error?.code == .httpStatus && outcome.error?.status == status)
        #expect(outcome.stored == RowFixture.stored)
        #expect(outcome.exchanges.count == 1)
    }

    @Test("Row 21: 404, 410 and 451 fail, and what is stored stays", arguments: [404, 410, 451])
    func row21(status: Int) async throws {
        let outcome = try await fixture.resume(.status(status))
        #expect(outcome.error?.code == .httpStatus && outcome.error?.status == status)
        #expect(outcome.stored == RowFixture.stored)
    }

    @Test("Row 22: transient statuses are waited out", arguments: [408, 429, 500, 502, 503, 504])
    func row22(status: Int) async throws {
        let outcome = try await fixture.resume(.status(status, retryAfter: "0"))
        outcome.expectFilm(film, requests: 2)
        #expect(outcome.ranges == ["bytes=131072-399999", "bytes=131072-399999"])
    }

    @Test("Row 23: 203 is delivered, and nothing is joined to it")
    func row23() async throws {
        let transformed = OriginBehaviour.status(203).with {
            $0.overrides = [.eTag: "\"v\"", .cacheControl: "max-age=60"]
        }
        let outcome = try await fixture.fetch(transformed)
        #expect(outcome.data == Data("status 203\n".utf8))
        #expect(outcome.exchanges.count == 1)
    }

    @Test(
        "Row 24: what arrived before a cut is kept to the last byte",
        arguments: [OriginBehaviour.Cut.finish, .reset],
        [OriginResource.Framing.contentLength, .chunked]
    )
    func row24(cut: OriginBehaviour.Cut, framing: OriginResource.Framing) async throws {
        var fixture = fixture
        fixture.film.framing = framing
        let outcome = try await fixture.fetch(.cut(after: 200_000, cut))
        outcome.expectFilm(film, requests: 2)
        let range = try #require(outcome.ranges.last ?? nil)
        let start = try #require(Int64(range.dropFirst("bytes=".count).prefix { $0 != "-" }))
        // What the client's kernel has not handed over by then goes with a reset.
        #expect(cut == .reset ? 1...200_000 ~= start : start == 200_000, "\(range)")
    }

    @Test("Row 25: more bytes than announced: none of them is believed")
    func row25() async throws {
        let chunk = "14\r\n" + String(repeating: "x", count: 20) + "\r\n0\r\n\r\n"
        let more = OriginBehaviour.raw(
            "HTTP/1.1 206 Partial Content\r\nETag: \(film.entityTagValue ?? "")\r\n"
                + "Content-Range: bytes 131072-131081/400000\r\n"
                + "Transfer-Encoding: chunked\r\n\r\n" + chunk
        )
        try await fixture.resume(more).expectRestart(film)
    }

    /// The head with the film's tag, and a body in these chunks.
    private func chunked(
        _ status: String,
        _ field: String,
        _ chunks: Range<Int64>...
    ) -> OriginBehaviour {
        let head =
            "HTTP/1.1 \(status)\r\nETag: \(film.entityTagValue ?? "")\r\n\(field)\r\n"
            + "Transfer-Encoding: chunked\r\n\r\n"
        let body = chunks.flatMap { chunk in
            Array("\(String(chunk.count, radix: 16))\r\n".utf8)
                + (film.generatedBody?.bytes(in: chunk) ?? []) + Array("\r\n".utf8)
        }
        return .faithful.with {
            $0.response = .raw(Array(head.utf8) + body + Array("0\r\n\r\n".utf8))
        }
    }

    @Test(
        "Row 25: the whole in the place of a part leaves nothing behind",
        // The excess within a chunk, and from the end of one on.
        arguments: [400_000, 268_928] as [Int64]
    )
    func row25AtLength(first: Int64) async throws {
        let range = "Content-Range: bytes 131072-399999/400000"
        let status = "206 Partial Content"
        let whole =
            first == 400_000
            ? chunked(status, range, 0..<first) : chunked(status, range, 0..<first, first..<400_000)
        try await fixture.resume(whole).expectChange(to: film)
        let cut = try await fixture.resume(whole, .status(404))
        #expect(cut.data == nil && cut.stored == nil, "\(String(describing: cut.stored))")
    }

    @Test("Row 25: a whole in chunks that ends before the known length leaves nothing behind")
    func row25Short() async throws {
        let short = chunked("200 OK", "X-Short: yes", 0..<300_000)
        try await fixture.resume(short).expectChange(to: film)
    }

    @Test(
        "Row 30: a part that calls itself 200 is not the whole, however it says so",
        arguments: [
            "bytes 131072-262143/400000", "bytes=131072-262143/400000", "bytes: 131072-262143/9",
            "bytes 131072-262143", "131072-262143/400000", "bytes */400000", "bytes 0-9/400000",
        ]
    )
    func row30(words: String) async throws {
        let body = film.generatedBody?.bytes(in: 131_072..<262_144) ?? []
        let head =
            "HTTP/1.1 200 OK\r\nETag: \(film.entityTagValue ?? "")\r\n"
            + "Content-Range: \(words)\r\nContent-Length: 131072\r\n\r\n"
        let row = OriginBehaviour.faithful.with { $0.response = .raw(Array(head.utf8) + body) }
        try await fixture.resume(row).expectRestart(film)
    }

    @Test("Row 30: a part that nobody asked for is refused, a whole with its range is one")
    func row30Whole() async throws {
        for (words, isWhole) in [
            ("bytes 0-399999/400000", true), ("bytes 0-399999/*", true), ("nonsense", true),
            ("bytes 0-399999/400001", false), ("bytes */400001", false),
        ] {
            let body = film.generatedBody?.bytes(in: 0..<400_000) ?? []
            let head =
                "HTTP/1.1 200 OK\r\nETag: \(film.entityTagValue ?? "")\r\n"
                + "Content-Range: \(words)\r\nContent-Length: 400000\r\n\r\n"
            let row = OriginBehaviour.faithful.with { $0.response = .raw(Array(head.utf8) + body) }
            let outcome = try await fixture.fetch(row)
            #expect((outcome.stored == 400_000) == isWhole, "\(words)")
            #expect((outcome.error?.code == .originFailed) == !isWhole, "\(words)")
        }
    }

    @Test("Row 26: a coded body despite identity is decoded")
    func row26() async throws {
        try await fixture.fetch(.gzipCoded).expectFilm(film, requests: 1)
    }

    @Test("Row 28: U, without a validator the bytes before the gap must come again")
    func row28() async throws {
        try await CacheFixture.run { fixture in
            var unnamed = film
            unnamed.entityTag = .none
            let cut = OriginScript.first(1, .cut(after: 200_000, .finish)).then(.status(403))
            fixture.origin.serve("/film?sig=1", unnamed, cut)
            fixture.origin.serve("/film?sig=2", unnamed)
            let request = try CacheRequest(fixture.origin.url("/film?sig=1"), key: "film")
            let fresh = fixture.origin.url("/film?sig=2")
            let data = try await fixture.withCache {
                $0.urlResolver = { _, _ in fresh }
            } _: { cache in
                try await cache.data(for: request)
            }
            #expect(firstDifference(data, film.allBytes) == nil)
            let exchanges = fixture.origin.log.exchanges
            #expect(exchanges.map(\.status) == [200, 403, 206])
            #expect(exchanges.last?.fields[.range] == "bytes=134464-399999")
        }
    }

    @Test("Row 29: bytes that the disk has lost are fetched again, and no others")
    func row29() async throws {
        try await CacheFixture.run { fixture in
            fixture.origin.serve("/film", film)
            let request = try fixture.request("/film")
            _ = try await fixture.withCache { try await $0.data(for: request) }
            let manager = FileManager.default
            let names = try manager.subpathsOfDirectory(atPath: fixture.directory.string)
            let body = try #require(names.first { $0.hasSuffix(".body") })
            let path = fixture.directory.appending(body).string
            var bytes = try #require(manager.contents(atPath: path))
            bytes[70_000] ^= 1
            #expect(manager.createFile(atPath: path, contents: bytes))
            let data = try await fixture.withCache { try await $0.data(for: request) }
            #expect(firstDifference(data, film.allBytes) == nil)
            let exchanges = fixture.origin.log.exchanges
            #expect(exchanges.map { $0.fields[.range] } == [nil, "bytes=65536-131071"])
        }
    }
}
