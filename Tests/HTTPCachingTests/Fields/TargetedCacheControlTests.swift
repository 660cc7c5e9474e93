import HTTPTypes
import Testing

@testable import HTTPCaching

/// `CDN-Cache-Control`, which a shared cache obeys in place of `Cache-Control` (RFC 9213).
@Suite("TargetedCacheControl", .timeLimit(.minutes(10)))
struct TargetedCacheControlTests {
    private static let name = HTTPField.Name.makeStatic("CDN-Cache-Control")
    private let shared = CacheRules(isShared: true)

    private func facts(
        _ targeted: String,
        _ control: String? = nil,
        _ other: HTTPFields = [:]
    )
        -> ResponseFacts
    {
        var fields = other
        fields[.cacheControl] = control
        fields[Self.name] = targeted
        return .make(200, fields)
    }

    @Test(
        "Directives have the types that their meaning asks for",
        arguments: [
            "max-age=\"60\"", "max-age", "max-age=-1", "max-age=1.5", "max-age=sixty", "no-store=1",
            "public=\"x\"", "s-maxage=?1", "no-cache=7", "private=(a b)", "", " ", "max-age=60,",
            "MAX-AGE=60", "max-age=60, &&&&&",
        ]
    )
    func malformed(text: String) {
        #expect(ResponseCacheControl(targeted: text) == nil)
        // What is malformed counts as absent.
        #expect(facts(text, "max-age=7").control(shared).maxAge == 7)
    }

    @Test("Directives are understood, unknown ones and parameters are passed over")
    func directives() throws {
        let text =
            "max-age=60;x=1, no-cache=\"Set-Cookie, X-A\", private=x-b, foo=(1 2), bar=1.5, "
            + "immutable, public=?0, stale-if-error=5, stale-while-revalidate=99999999999"
        let control = try #require(ResponseCacheControl(targeted: text))
        #expect(control.maxAge == 60 && control.staleIfError == 5)
        #expect(control.staleWhileRevalidate == 1 << 31)
        #expect(control.noCacheFields == ["set-cookie", "x-a"] && control.privateFields == ["x-b"])
        #expect(control.flags == .immutable)
        #expect(
            try #require(ResponseCacheControl(targeted: "no-store, private, no-cache")).flags
                == [.noStore, .isPrivate, .noCache]
        )
    }

    @Test("A shared cache ignores Cache-Control and Expires beside it, a private one ignores it")
    func precedence() {
        let past: HTTPFields = [.expires: WallTime.date(-100)]
        let future: HTTPFields = [.expires: WallTime.date(1000)]
        let cases: [(ResponseFacts, shared: Int64, own: Int64)] = [
            (facts("max-age=60", "max-age=1"), 60, 1),
            (facts("max-age=1", "max-age=60"), 1, 60),
            (facts("max-age=60", nil, past), 60, 0),
            (facts("max-age=0", nil, future), 0, 1000),
            (facts("no-transform", nil, future), 0, 1000),
            (facts("max-age=60, s-maxage=5", "s-maxage=7"), 5, 0),
        ]
        for (facts, sharedSeconds, seconds) in cases {
            #expect(FreshnessLifetime(of: facts, rules: shared).duration == .seconds(sharedSeconds))
            #expect(FreshnessLifetime(of: facts, rules: CacheRules()).duration == .seconds(seconds))
        }
    }

    @Test("Storing and reusing follow it as well")
    func decisions() {
        func mayStore(_ facts: ResponseFacts, _ rules: CacheRules) -> Bool {
            Storability.decide(response: facts, request: RequestFacts(), rules: rules) == .storable
        }
        let open = facts("max-age=60", "no-store")
        #expect(mayStore(open, shared) && !mayStore(open, CacheRules()))
        for directive in ["no-store", "private"] {
            let closed = facts(directive, "max-age=60, public")
            #expect(!mayStore(closed, shared) && mayStore(closed, CacheRules()))
        }
        let validated = facts("no-cache", "max-age=60")
        for (rules, action) in [(shared, ReuseDecision.Action.validate), (CacheRules(), .use)] {
            let decision = ReuseDecision(
                stored: validated,
                request: RequestFacts(),
                rules: rules,
                now: received
            )
            #expect(decision.action == action)
        }
    }

    @Test("It is stored and delivered like any other field")
    func fields() {
        var fields: HTTPFields = [.cacheControl: "no-cache=\"X-A\""]
        fields[Self.name] = "no-cache=\"X-B\""
        fields[.makeTest("X-A")] = "1"
        fields[.makeTest("X-B")] = "1"
        let stored = StoredFields.of(fields, rules: shared)
        #expect(stored[Self.name] == "no-cache=\"X-B\"")
        #expect(stored[.makeTest("X-A")] == "1" && stored[.makeTest("X-B")] == nil)
        let own = StoredFields.of(fields, rules: CacheRules())
        #expect(own[.makeTest("X-A")] == nil && own[.makeTest("X-B")] == "1")
    }
}

extension HTTPField.Name {
    fileprivate static func makeTest(_ name: StaticString) -> HTTPField.Name { makeStatic(name) }
}
