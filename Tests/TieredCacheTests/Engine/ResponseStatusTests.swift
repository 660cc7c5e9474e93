import FoundationEssentials
import HTTPCaching
import HTTPTypes
import Testing
import TieredCacheTesting

@testable import TieredCache

/// What the application is told about each kind of response, in the words of RFC 9211.
@Suite(.timeLimit(.minutes(10)))
struct ResponseStatusTests {
    private static let url = "http://origin.example/a"
    /// An origin that fails is not asked again, for which a clock set by hand would have to go on.
    private let once: @Sendable (inout MediaCache.Configuration) -> Void = { $0.retries = 1 }

    /// Asks as an application does, and reads the body.
    private func ask(
        _ fixture: RelayFixture,
        _ policy: CachePolicy = .protocolDefault,
        fields: HTTPFields = [:],
        range: ByteRangeSpec? = nil
    ) async throws -> (status: String, source: ResponseSource, body: String) {
        var request = try CacheRequest(Self.url)
        request.policy = policy
        request.fields = fields
        request.range = range
        let response = try await fixture.cache.response(for: request)
        let body = try await response.body.collect()
        let status = response.cacheStatus.fieldValue
        return (status, response.source, String(decoding: body, as: UTF8.self))
    }

    @Test("Miss, hit, validation, stale, and what may not be stored")
    func kinds() async throws {
        try await RelayFixture.run(once) { fixture in
            let fresh: HTTPFields = [.cacheControl: "max-age=60", .eTag: "\"a\""]
            fixture.prepare(fixture.answer(200, fresh))
            let miss = try await ask(fixture)
            #expect(miss.status == "TieredCache; fwd=uri-miss; stored" && miss.source == .origin)
            fixture.time.advance(by: .seconds(10))
            let hit = try await ask(fixture)
            #expect(hit.status.hasPrefix("TieredCache; hit; ttl=50; detail="))
            fixture.time.advance(by: .seconds(60))
            fixture.prepare(fixture.answer(304, fresh))
            let validated = try await ask(fixture)
            #expect(validated.status == "TieredCache; fwd=stale; fwd-status=304; stored")
            #expect(validated.source == .revalidated && validated.body == "body")
            fixture.time.advance(by: .seconds(61))
            fixture.prepare()
            let stale = try await ask(fixture)
            #expect(stale.status == "TieredCache; fwd=stale; detail=stale")
            #expect(stale.source == .stale && stale.body == "body")
            fixture.prepare(fixture.answer(200, [.cacheControl: "no-store"], body: "new"))
            let passed = try await ask(fixture, .reload)
            #expect(passed.status == "TieredCache; fwd=request; detail=response-no-store")
            #expect(passed.source == .origin && passed.body == "new")
        }
    }

    @Test("Another variant, and a part")
    func variantsAndParts() async throws {
        try await RelayFixture.run(once) { fixture in
            let varying: HTTPFields = [.cacheControl: "max-age=60", .vary: "Accept"]
            fixture.prepare(fixture.answer(200, varying), fixture.answer(200, varying))
            _ = try await ask(fixture, fields: [.accept: "a"])
            let other = try await ask(fixture, fields: [.accept: "b"])
            #expect(other.status == "TieredCache; fwd=vary-miss; stored")
            let part = try await ask(fixture, fields: [.accept: "b"], range: .bounded(1..<3))
            #expect(part.status.hasPrefix("TieredCache; hit;") && part.body == "od")
        }
    }

    @Test("The application's lifetime is for origins that say nothing, and for no others")
    func applicationLifetime() async throws {
        let lifetime: (inout MediaCache.Configuration) -> Void = {
            $0.applicationLifetime = .seconds(100)
            $0.retries = 1
        }
        try await RelayFixture.run(lifetime) { fixture in
            fixture.prepare(fixture.answer(200, body: "silent"))
            _ = try await ask(fixture)
            fixture.time.advance(by: .seconds(99))
            let hit = try await ask(fixture)
            #expect(hit.status.hasPrefix("TieredCache; hit; ttl=1;") && hit.body == "silent")
            fixture.time.advance(by: .seconds(2))
            fixture.prepare(fixture.answer(200, [.cacheControl: "max-age=5"], body: "spoken"))
            #expect(try await ask(fixture).body == "spoken")
            fixture.time.advance(by: .seconds(6))
            fixture.prepare(fixture.answer(200, body: "again"))
            #expect(try await ask(fixture).body == "again")
        }
    }

    @Test("Without the origin: what the rules or the policy allow, marked; else an error")
    func offline() async throws {
        for (control, isAllowed) in [("max-age=5", true), ("max-age=5, must-revalidate", false)] {
            try await RelayFixture.run(once) { fixture in
                fixture.prepare(fixture.answer(200, [.cacheControl: control]))
                _ = try await ask(fixture)
                fixture.time.advance(by: .seconds(60))
                fixture.prepare()
                if isAllowed {
                    let stale = try await ask(fixture)
                    #expect(stale.source == .stale && stale.status.hasSuffix("; detail=stale"))
                } else {
                    let error = await #expect(throws: CacheError.self) { try await ask(fixture) }
                    #expect(error?.code == .originFailed)
                }
                for policy in [CachePolicy.cacheElseLoad, .cacheOnly] {
                    let stored = try await ask(fixture, policy)
                    #expect(stored.status.hasPrefix("TieredCache; hit; ttl=-55;"), "\(policy)")
                }
                let error = await #expect(throws: CacheError.self) {
                    try await ask(fixture, .reload)
                }
                #expect(error?.code == .originFailed)
            }
        }
    }
}
