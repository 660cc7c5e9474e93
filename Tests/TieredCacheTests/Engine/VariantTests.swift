import FoundationEssentials
import HTTPCaching
import HTTPTypes
import Testing
import TieredCacheTesting

@testable import TieredCache

@Suite(.timeLimit(.minutes(10)))
struct VariantTests {
    private static func vary(_ names: String) -> HTTPFields {
        [.cacheControl: "max-age=60", .vary: names]
    }

    @Test("Several variants are stored side by side, and each request gets its own")
    func variantsStay() async throws {
        try await RelayFixture.run { fixture in
            for language in ["en", "de", "fr"] {
                let fields: HTTPFields = [.acceptLanguage: language]
                let answer = fixture.answer(200, Self.vary("Accept-Language"), body: language)
                let first = try await fixture.ask(.get, fields, answer)
                #expect(first.body == language && first.requests.count == 1)
                #expect(
                    first.cacheStatus.forwardReason == (language == "en" ? .uriMiss : .varyMiss)
                )
            }
            for language in ["de", "en", "fr", "DE"] {
                let stored = try await fixture.ask(.get, [.acceptLanguage: language])
                #expect(stored.isHit && stored.body == language.lowercased())
            }
            #expect(try await fixture.ask(fixture.answer(200)).requests.count == 1)
        }
    }

    @Test("There is a limit to the variants: the oldest gives way")
    func variantsAreLimited() async throws {
        try await RelayFixture.run { fixture in
            let limit = CacheKey.variantLimit
            for number in 0...limit {
                fixture.time.advance(by: .seconds(1))
                let answer = fixture.answer(200, Self.vary("User-Agent"), body: "\(number)")
                _ = try await fixture.ask(.get, [.userAgent: "\(number)"], answer)
            }
            for number in 1...limit {
                let stored = try await fixture.ask(.get, [.userAgent: "\(number)"])
                #expect(stored.isHit && stored.body == "\(number)")
            }
            let oldest = try await fixture.ask(.get, [.userAgent: "0"], fixture.answer(200))
            #expect(oldest.requests.count == 1)
        }
    }

    @Test(
        "A response that varies by other fields, or by none, takes the place of all variants",
        arguments: ["User-Agent", nil]
    )
    func otherListsReplace(vary: String?) async throws {
        try await RelayFixture.run { fixture in
            for language in ["en", "de"] {
                let answer = fixture.answer(200, Self.vary("Accept-Language"), body: language)
                _ = try await fixture.ask(.get, [.acceptLanguage: language], answer)
            }
            var fields: HTTPFields = [.cacheControl: "max-age=60"]
            fields[.vary] = vary
            let answer = fixture.answer(200, fields, body: "new")
            _ = try await fixture.ask(.get, [.acceptLanguage: "fr"], answer)
            for language in ["en", "de"] {
                let stored = try await fixture.ask(.get, [.acceptLanguage: language])
                #expect(stored.isHit && stored.body == "new")
            }
        }
    }

    @Test("A change makes all variants unusable, and removing removes them all")
    func variantsGoTogether() async throws {
        try await RelayFixture.run { fixture in
            let agents = ["a", "b", "c"]
            for agent in agents {
                let answer = fixture.answer(200, Self.vary("User-Agent"), body: agent)
                _ = try await fixture.ask(.get, [.userAgent: agent], answer)
            }
            _ = try await fixture.ask(.post, fixture.answer(204))
            for agent in agents {
                let answer = fixture.answer(200, Self.vary("User-Agent"), body: agent)
                let again = try await fixture.ask(.get, [.userAgent: agent], answer)
                #expect(again.requests.count == 1)
            }
            #expect(try await fixture.ask(.get, [.userAgent: "b"]).isHit)
            let request = try CacheRequest("http://origin.example/a")
            #expect(try await fixture.cache.remove(request))
            #expect(try await fixture.cache.entries().isEmpty)
        }
    }

    @Test("A 304 freshens the variant that was asked about")
    func validationIsOfOneVariant() async throws {
        try await RelayFixture.run { fixture in
            for agent in ["a", "b"] {
                var fields = Self.vary("User-Agent")
                fields[.eTag] = "\"\(agent)\""
                let answer = fixture.answer(200, fields, body: agent)
                _ = try await fixture.ask(.get, [.userAgent: agent], answer)
            }
            fixture.time.advance(by: .seconds(61))
            var fields = Self.vary("User-Agent")
            fields[.eTag] = "\"b\""
            let answer = fixture.answer(304, fields)
            let confirmed = try await fixture.ask(.get, [.userAgent: "b"], answer)
            #expect(confirmed.requests.first?.headerFields[.ifNoneMatch] == "\"b\"")
            #expect(confirmed.body == "b")
            #expect(try await fixture.ask(.get, [.userAgent: "b"]).isHit)
            let other = try await fixture.ask(.get, [.userAgent: "a"], fixture.answer(200))
            #expect(other.requests.first?.headerFields[.ifNoneMatch] == "\"a\"")
        }
    }

    @Test("A request that selects none offers the tags of all, and a 304 says which is its answer")
    func tagsOfOtherVariantsAreOffered() async throws {
        try await RelayFixture.run { fixture in
            for agent in ["a", "b"] {
                var fields = Self.vary("User-Agent")
                fields[.eTag] = "\"\(agent)\""
                let answer = fixture.answer(200, fields, body: agent)
                _ = try await fixture.ask(.get, [.userAgent: agent], answer)
            }
            var fields = Self.vary("User-Agent")
            fields[.eTag] = "\"b\""
            let chosen = try await fixture.ask(
                .get,
                [.userAgent: "c"],
                fixture.answer(304, fields)
            )
            #expect(chosen.requests.map { $0.headerFields[.ifNoneMatch] } == ["\"a\", \"b\""])
            #expect(chosen.status == 200 && chosen.body == "b")
            #expect(chosen.cacheStatus.forwardReason == .varyMiss)
            #expect(chosen.cacheStatus.forwardStatus == 304)
            for agent in ["a", "b"] {
                let stored = try await fixture.ask(.get, [.userAgent: agent])
                #expect(stored.isHit && stored.body == agent)
            }
            fields[.eTag] = "\"d\""
            let other = fixture.answer(200, fields, body: "d")
            let fetched = try await fixture.ask(.get, [.userAgent: "d"], other)
            #expect(fetched.body == "d" && fetched.requests.count == 1)
            #expect(try await fixture.ask(.get, [.userAgent: "d"]).isHit)
        }
    }

    @Test("A 304 that names none of them is followed by a request for the whole")
    func aStrangeConfirmationIsNotTrusted() async throws {
        try await RelayFixture.run { fixture in
            var fields = Self.vary("User-Agent")
            fields[.eTag] = "\"a\""
            let answer = fixture.answer(200, fields, body: "a")
            _ = try await fixture.ask(.get, [.userAgent: "a"], answer)
            let fetched = try await fixture.ask(
                .get,
                [.userAgent: "b"],
                fixture.answer(304, [.eTag: "\"x\""]),
                fixture.answer(200, Self.vary("User-Agent"), body: "b")
            )
            #expect(fetched.body == "b")
            #expect(fetched.requests.map { $0.headerFields[.ifNoneMatch] } == ["\"a\"", nil])
        }
    }

    @Test(
        "What the client selects by itself is forwarded as it is",
        arguments: [
            [.ifNoneMatch: "\"z\""], [.ifModifiedSince: "Sun, 09 Sep 2001 01:46:40 GMT"],
            [.range: "bytes=0-1"],
        ] as [HTTPFields]
    )
    func theClientsOwnSelectionStays(fields: HTTPFields) async throws {
        try await RelayFixture.run { fixture in
            var stored = Self.vary("User-Agent")
            stored[.eTag] = "\"a\""
            let answer = fixture.answer(200, stored, body: "a")
            _ = try await fixture.ask(.get, [.userAgent: "a"], answer)
            var asked = fields
            asked[.userAgent] = "b"
            let forwarded = try await fixture.ask(.get, asked, fixture.answer(404))
            let request = try #require(forwarded.requests.first?.headerFields)
            #expect(request[.ifNoneMatch] == fields[.ifNoneMatch])
        }
    }

    @Test("The application's own requests have variants too")
    func variantsOfTheApplication() async throws {
        try await RelayFixture.run { fixture in
            for agent in ["a", "b", "a", "b"] {
                fixture.prepare(fixture.answer(200, Self.vary("User-Agent"), body: agent))
                var request = try CacheRequest("http://origin.example/a")
                request.fields[.userAgent] = agent
                #expect(try await fixture.cache.data(for: request) == Data(agent.utf8))
            }
            #expect(fixture.transport.requests.count == 2)
        }
    }
}
