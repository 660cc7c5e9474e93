import HTTPTypes
import TestParts
import Testing
import TieredCache
import TieredCacheTesting

@testable import TieredCacheProxy

/// Origins that code what they were asked to send as it is.
@Suite(.tags(.realTime), .timeLimit(.minutes(10)))
struct PlayerCodingTests {
    private static let length: Int64 = 700_000

    @Test("A gzip coding is taken off: playing, seeking, and again", arguments: [true, false])
    func gzip(_ beginsWithSeek: Bool) async throws {
        try await ProxyFixture.run { fixture in
            let film = OriginResource.fresh(Self.length)
            let body = try #require(film.generatedBody)
            fixture.origin.serve("/a.mp4", film, OriginScript(.gzipCoded))
            let seek = 500_000..<Int64(500_010)
            for _ in 0..<2 {
                for isSeek in [beginsWithSeek, !beginsWithSeek] {
                    let range = isSeek ? "Range: bytes=500000-500009" : "X: y"
                    let answer = try await fixture.ask("/a.mp4", range)
                    #expect(answer.status == (isSeek ? 206 : 200))
                    #expect(answer["content-encoding"] == nil)
                    #expect(
                        firstDifference(
                            answer.body,
                            body.bytes(in: isSeek ? seek : 0..<Self.length)
                        ) == nil
                    )
                }
            }
            let exchanges = fixture.origin.log.exchanges(for: "/a.mp4")
            #expect(exchanges.allSatisfy { $0.fields[.acceptEncoding] == "identity" })
            // A part, which is of no use, and the whole.
            #expect(exchanges.count <= 2, "\(exchanges.map(\.fields))")
        }
    }

    @Test("A coding that is none does no harm", arguments: ["utf-8", "none"])
    func noCoding(_ name: String) async throws {
        try await ProxyFixture.run { fixture in
            let film = OriginResource.fresh(Self.length)
            let body = try #require(film.generatedBody).bytes(in: 0..<Self.length)
            fixture.origin.serve("/a.mp4", film, OriginScript(.lying([.contentEncoding: name])))
            let seek = try await fixture.ask("/a.mp4", "Range: bytes=500000-500009")
            #expect(seek.status == 206 && seek.body == Array(body[500_000..<500_010]))
            let whole = try await fixture.ask("/a.mp4")
            #expect(whole.status == 200 && whole["content-encoding"] == nil)
            #expect(firstDifference(whole.body, body) == nil)
        }
    }

    @Test("What a player says about itself and its connection does not reach the origin")
    func ownShape() async throws {
        try await ProxyFixture.run { fixture in
            fixture.origin.serve("/a.mp4", .fresh(Self.length))
            let answer = try await fixture.ask(
                "/a.mp4",
                "Icy-MetaData: 1",
                "Accept-Encoding: gzip, br",
                "Connection: close, X-Hop",
                "X-Hop: 1",
                "Referer: http://h/",
                "If-Match: *",
                "Cookie: a=b",
                "Range: bytes=0-"
            )
            #expect(answer.status == 206)
            for exchange in fixture.origin.log.exchanges(for: "/a.mp4") {
                let fields = exchange.fields
                #expect(fields[.acceptEncoding] == "identity")
                #expect(fields[.cookie] == "a=b")
                // Bounded, and the connection is kept.
                #expect(fields[.range]?.hasSuffix("-") == false)
                #expect(fields[.connection] == nil || fields[.connection] == "keep-alive")
                let names = fields.map { $0.name.canonicalName }
                for name in ["icy-metadata", "x-hop", "referer", "if-match"] {
                    #expect(!names.contains(name), "\(names)")
                }
            }
        }
    }
}
