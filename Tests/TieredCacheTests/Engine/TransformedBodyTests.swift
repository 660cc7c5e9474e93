import FoundationEssentials
import HTTPTypes
import TestParts
import Testing
import TieredCacheTesting

@testable import TieredCache

/// Bodies whose bytes are not those that the origin's entity tag names (rows 23 and 26).
///
/// Nothing is joined to them, whatever tag the next response has (invariant 3).
@Suite("Engine: transformed bodies", .tags(.realTime), .timeLimit(.minutes(10)))
struct TransformedBodyTests {
    private static let tag = "\"same for both\""

    /// Answers first as told, then with a version of the page that has the same tag.
    private func expectNothingJoined(_ first: OriginBehaviour, then version: Int) async throws {
        try await CacheFixture.run { fixture in
            var page = OriginResource.generated(length: 300_000, cacheControl: "max-age=60")
            page.entityTag = .custom(Self.tag)
            fixture.origin.serve("/page", page, .first(1, first))
            page.version = version
            let request = try fixture.request("/page")
            try await fixture.withCache { cache in
                let response = try await cache.response(for: request)
                let error = await #expect(throws: CacheError.self) {
                    try await response.body.collect()
                }
                #expect(error?.code == .representationChanged)
                #expect(try await firstDifference(cache.data(for: request), page.allBytes) == nil)
            }
        }
    }

    @Test("A body changed by a proxy (203) and cut is not completed by the origin's")
    func nonAuthoritative() async throws {
        let body = String(repeating: "changed ", count: 20_000)
        let head = "HTTP/1.1 203 Changed\r\nContent-Length: 300000\r\nETag: \(Self.tag)\r\n\r\n"
        try await expectNothingJoined(.raw(head + body), then: 1)
    }

    @Test("A body that was decoded on the way in and cut is not completed by a plain one")
    func decoded() async throws {
        try await expectNothingJoined(
            .gzipCoded.with {
                $0.interruptions = [(140_000, .changeVersion), (150_000, .cut(.finish))]
            },
            then: 2
        )
    }

    @Test("A part of unknown length that is no longer fresh is completed")
    func staleAndOfUnknownLength() async throws {
        try await CacheFixture.run { fixture in
            var page = OriginResource.generated(length: 300_000, cacheControl: "no-cache")
            page.framing = .chunked
            let cut = OriginBehaviour.faithful.with {
                $0.interruptions = [(150_000, .cut(.finish))]
            }
            fixture.origin.serve("/page", page, .first(1, cut).then(1, .dropped()))
            let request = try fixture.request("/page")
            try await fixture.withCache({ $0.retries = 1 }) { cache in
                let error = await #expect(throws: CacheError.self) {
                    try await cache.data(for: request)
                }
                #expect(error?.code == .originFailed)
            }
            let bytes = try await fixture.withCache { try await $0.data(for: request) }
            #expect(firstDifference(bytes, page.allBytes) == nil)
        }
    }

    @Test("300 is no redirect that can be followed; its body is the answer")
    func multipleChoices() async throws {
        try await CacheFixture.run { fixture in
            let head =
                "HTTP/1.1 300 Choose\r\nContent-Length: 7\r\nCache-Control: max-age=60\r\n\r\n"
            fixture.origin.serve("/page", OriginScript(.raw(head + "a, or b")))
            let request = try fixture.request("/page")
            try await fixture.withCache { cache in
                for _ in 0..<2 {
                    let response = try await cache.response(for: request)
                    #expect(response.status.code == 300)
                    #expect(
                        try await firstDifference(response.body.collect(), Data("a, or b".utf8))
                            == nil
                    )
                }
            }
            #expect(fixture.origin.log.exchanges.count == 1)
        }
    }
}
