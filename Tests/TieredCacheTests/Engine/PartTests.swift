import FoundationEssentials
import HTTPCaching
import HTTPTypes
import Testing
import TieredCacheTesting

@testable import TieredCache

/// Parts that nothing may be joined to: passed on, never stored.
@Suite(.timeLimit(.minutes(10)))
struct PartTests {
    private static let fresh: HTTPFields = [.cacheControl: "max-age=60"]

    /// A 206 without a validator.
    private static func part(
        _ fixture: RelayFixture,
        _ range: String,
        _ body: String,
        _ fields: HTTPFields = fresh
    ) -> ScriptedResponse {
        var fields = fields
        fields[.contentRange] = "bytes \(range)"
        return fixture.answer(206, fields, body: body)
    }

    @Test("A part is passed on as the origin sends it, and asked for again")
    func passed() async throws {
        try await RelayFixture.run { fixture in
            for (range, place, body) in [
                ("bytes=-5", "5-9/10", "56789"), ("bytes=-2", "8-9/*", "89"),
                ("bytes=-6", "4-9/10", "01234"),
            ] {
                for _ in 0..<2 {
                    let answer = try await fixture.ask(
                        .get,
                        [.range: range],
                        Self.part(fixture, place, body)
                    )
                    #expect(!answer.isHit && answer.status == 206 && answer.body == body)
                    #expect(answer.fields[.contentRange] == "bytes \(place)")
                    #expect(answer.fields[.contentLength] == String(body.utf8.count))
                    #expect(
                        answer.cacheStatus.fieldValue == "TieredCache; fwd=uri-miss; detail=partial"
                    )
                }
            }
            #expect(try await fixture.cache.entries().isEmpty)
        }
    }

    @Test("Of a part that is longer than was asked for a client gets what it asked for")
    func longer() async throws {
        try await RelayFixture.run { fixture in
            var fields = Self.fresh
            fields[.eTag] = "W/\"a\""
            for _ in 0..<2 {
                let answer = try await fixture.ask(
                    .get,
                    [.range: "bytes=1-2"],
                    Self.part(fixture, "0-3/4", "abcd", fields)
                )
                #expect(!answer.isHit && answer.body == "bc")
                #expect(answer.fields[.contentRange] == "bytes 1-2/4")
            }
        }
    }

    @Test("A part is in the way of no whole that comes later")
    func besideTheWhole() async throws {
        try await RelayFixture.run { fixture in
            let range: HTTPFields = [.range: "bytes=-2"]
            _ = try await fixture.ask(.get, range, Self.part(fixture, "2-3/4", "ab"))
            _ = try await fixture.ask(fixture.answer(200, Self.fresh, body: "wxyz"))
            let after = try await fixture.ask(.get, range)
            #expect(after.isHit && after.body == "yz")
        }
    }

    @Test("A part that breaks off is never taken for whole")
    func cutParts() async throws {
        let once: (inout MediaCache.Configuration) -> Void = { $0.retries = 1 }
        try await RelayFixture.run(once) { fixture in
            let range: HTTPFields = [.range: "bytes=-5"]
            let fields: HTTPFields = [.cacheControl: "max-age=60", .contentLength: "5"]
            let cut = Self.part(fixture, "5-9/10", "567", fields)
            _ = await #expect(throws: (any Error).self) {
                try await fixture.ask(.get, range, cut)
            }
            let again = try await fixture.ask(.get, range, Self.part(fixture, "5-9/10", "56789"))
            #expect(!again.isHit && again.body == "56789")
        }
    }

    @Test("The application gets bytes of such a part too")
    func application() async throws {
        try await RelayFixture.run { fixture in
            var request = try CacheRequest("http://origin.example/a")
            request.range = .bounded(1..<3)
            fixture.prepare(Self.part(fixture, "0-3/4", "abcd"))
            let first = try await fixture.cache.data(for: request)
            #expect(String(decoding: first, as: UTF8.self) == "bc")
            request.range = .suffix(2)
            fixture.prepare(
                Self.part(fixture, "0-3/4", "efgh"),
                Self.part(fixture, "0-3/4", "efgh")
            )
            let second = try await fixture.cache.data(for: request)
            #expect(String(decoding: second, as: UTF8.self) == "gh")
        }
    }

    @Test("A reader takes no part for the whole")
    func readers() async throws {
        try await RelayFixture.run { fixture in
            let block = Int(BlockTable.blockSize)
            let whole = (0..<3 * block / 8).map { String($0 + 10_000_000) }.joined()
            let place = "\(2 * block)-\(3 * block - 1)/\(3 * block)"
            let request = try CacheRequest("http://origin.example/a")
            fixture.prepare(
                Self.part(fixture, place, String(whole.dropFirst(2 * block))),
                fixture.answer(200, Self.fresh, body: whole)
            )
            let reader = try await fixture.cache.reader(for: request, at: 2 * Int64(block))
            #expect(try await firstDifference(reader.all(), whole.utf8) == nil)
        }
    }

    @Test("What one client got for its credentials is not for the others of a private cache")
    func credentials() async throws {
        try await RelayFixture.run { fixture in
            let alice: HTTPFields = [.authorization: "Basic YQ=="]
            let bob: HTTPFields = [.authorization: "Basic Yg=="]
            let secret = fixture.answer(200, Self.fresh, body: "of alice")
            _ = try await fixture.ask(.get, alice, secret)
            #expect(try await fixture.ask(.get, alice).body == "of alice")
            let other = try await fixture.ask(
                .get,
                bob,
                fixture.answer(200, Self.fresh, body: "of bob")
            )
            #expect(!other.isHit && other.body == "of bob")
            #expect(try await fixture.ask(.get, alice).isHit)
            #expect(try await fixture.ask(.get, bob).body == "of bob")
            let refused = try await fixture.ask(fixture.answer(401, body: "refused"))
            #expect(!refused.isHit && refused.status == 401)
            #expect(try await fixture.ask(.get, alice).isHit)
            // What the origin says is for anybody is.
            let open = fixture.answer(200, [.cacheControl: "public, max-age=60"], body: "open")
            _ = try await fixture.ask(.get, [.authorization: "Basic Yw=="], open)
            #expect(try await fixture.ask().body == "open")
        }
    }
}
