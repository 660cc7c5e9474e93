import HTTPCaching
import HTTPTypes
import Testing

@Suite("ReuseDecision", .timeLimit(.minutes(10)))
struct ReuseDecisionTests {
    private typealias Expected = (ReuseDecision.Action, ReuseDecision.Reason)

    private struct Case {
        var response: String
        var request = ""
        var age: Int64
        var isShared = false
        var policy = CachePolicy.protocolDefault
        var expected: Expected

        init(
            _ response: String,
            _ request: String = "",
            age: Int64,
            isShared: Bool = false,
            policy: CachePolicy = .protocolDefault,
            _ action: ReuseDecision.Action,
            _ reason: ReuseDecision.Reason
        ) {
            (self.response, self.request, self.age) = (response, request, age)
            (self.isShared, self.policy, self.expected) = (isShared, policy, (action, reason))
        }
    }

    private func check(_ cases: [Case]) {
        for entry in cases {
            let decision = ReuseDecision(
                stored: .make(200, [.cacheControl: entry.response]),
                request: .make(entry.request, policy: entry.policy),
                rules: CacheRules(isShared: entry.isShared),
                now: received.advanced(by: .seconds(entry.age))
            )
            #expect(decision.action == entry.expected.0, "\(entry)")
            #expect(decision.reason == entry.expected.1, "\(entry)")
        }
    }

    @Test("Fresh and stale (§4.2)")
    func freshness() {
        check([
            Case("max-age=60", age: 0, .use, .fresh),
            Case("max-age=60", age: 59, .use, .fresh),
            Case("max-age=60", age: 60, .validate, .stale),
            Case("max-age=60", age: 6000, .validate, .stale),
            Case("max-age=0", age: 0, .validate, .stale),
            Case("", age: 0, .validate, .stale),
            Case("max-age=60, no-cache", age: 0, .validate, .noCache),
            Case("max-age=60, no-cache=\"a\"", age: 0, .use, .fresh),
            Case("max-age=60, must-revalidate", age: 0, .use, .fresh),
            Case("max-age=60, must-revalidate", age: 60, .validate, .stale),
            Case("max-age=60, immutable", age: 60, .validate, .stale),
            Case("s-maxage=60", age: 0, isShared: true, .use, .fresh),
            Case("s-maxage=60", age: 0, .validate, .stale),
        ])
    }

    @Test("Request directives (§5.2.1)")
    func requestDirectives() {
        check([
            Case("max-age=60", "no-cache", age: 0, .validate, .request),
            Case("max-age=60", "no-store", age: 0, .use, .fresh),
            Case("max-age=60", "max-age=0", age: 0, .validate, .request),
            Case("max-age=60", "max-age=10", age: 10, .use, .fresh),
            Case("max-age=60", "max-age=10", age: 11, .validate, .request),
            Case("max-age=60", "min-fresh=10", age: 50, .use, .fresh),
            Case("max-age=60", "min-fresh=10", age: 51, .validate, .request),
            Case("max-age=60", "max-stale", age: 6000, .use, .maxStale),
            Case("max-age=60", "max-stale=10", age: 70, .use, .maxStale),
            Case("max-age=60", "max-stale=10", age: 71, .validate, .stale),
            Case("max-age=60", "max-stale, max-age=65", age: 70, .validate, .request),
            Case("max-age=60", "max-stale, min-fresh=1", age: 70, .validate, .stale),
            Case("max-age=60, must-revalidate", "max-stale", age: 70, .validate, .stale),
            Case("max-age=60, no-cache", "max-stale", age: 70, .validate, .noCache),
            Case("max-age=60, proxy-revalidate", "max-stale", age: 70, .use, .maxStale),
            Case(
                "max-age=60, proxy-revalidate",
                "max-stale",
                age: 70,
                isShared: true,
                .validate,
                .stale
            ),
            Case("s-maxage=60", "max-stale", age: 70, isShared: true, .validate, .stale),
            Case("max-age=60", "only-if-cached", age: 0, .use, .fresh),
            Case("max-age=60", "only-if-cached", age: 60, .refuse, .stale),
            Case("max-age=60", "only-if-cached, max-stale", age: 70, .use, .maxStale),
        ])
    }

    @Test("A fresh immutable response is not validated for its age (RFC 8246)")
    func immutable() {
        check([
            Case("max-age=60, immutable", "max-age=0", age: 5, .use, .fresh),
            Case("max-age=60, immutable", "no-cache", age: 5, .validate, .request),
            Case("max-age=60, immutable", "max-age=0", age: 60, .validate, .request),
        ])
    }

    @Test("stale-while-revalidate (RFC 5861 §3)")
    func staleWhileRevalidate() {
        let window = "max-age=60, stale-while-revalidate=10"
        check([
            Case(window, age: 59, .use, .fresh),
            Case(window, age: 60, .useAndRevalidate, .staleWhileRevalidate),
            Case(window, age: 70, .useAndRevalidate, .staleWhileRevalidate),
            Case(window, age: 71, .validate, .stale),
            Case(window + ", must-revalidate", age: 65, .validate, .stale),
            Case(window + ", no-cache", age: 65, .validate, .noCache),
            Case(window, "no-cache", age: 65, .validate, .request),
            Case(window, "only-if-cached", age: 65, .use, .staleWhileRevalidate),
            Case("stale-while-revalidate", age: 0, .validate, .stale),
        ])
    }

    @Test("The application's policies")
    func policies() {
        check([
            Case("max-age=60", age: 0, policy: .reload, .forward, .policy),
            Case("max-age=60", age: 0, policy: .cacheElseLoad, .use, .fresh),
            Case("no-cache, must-revalidate", age: 99, policy: .cacheElseLoad, .use, .policy),
            Case("max-age=60", age: 0, policy: .cacheOnly, .use, .fresh),
            Case("max-age=60", "no-cache", age: 99, policy: .cacheOnly, .use, .policy),
        ])
    }

    @Test("Vary and invalidation")
    func mismatches() {
        func decide(_ policy: CachePolicy, varies: Bool, isInvalidated: Bool) -> ReuseDecision {
            ReuseDecision(
                stored: .make(200, [.cacheControl: "max-age=60, stale-if-error=60"]),
                request: RequestFacts(policy: policy),
                matchesVary: !varies,
                isInvalidated: isInvalidated,
                rules: CacheRules(),
                now: received
            )
        }
        for policy in CachePolicy.allCases {
            let decision = decide(policy, varies: true, isInvalidated: false)
            #expect(decision.action == (policy == .cacheOnly ? .refuse : .forward))
            let forwardReason: CacheStatus.ForwardReason? =
                switch policy {
                case .protocolDefault, .cacheElseLoad: .varyMiss
                case .reload: .request
                case .cacheOnly: nil
                }
            #expect(decision.forwardReason == forwardReason)
        }
        let invalidated = decide(.protocolDefault, varies: false, isInvalidated: true)
        #expect(invalidated.action == .validate)
        #expect(invalidated.reason == .invalidated)
        #expect(invalidated.staleOnError == .never)
    }

    @Test(
        "Behind which failures a stale response may be served (§4.2.4, RFC 5861 §4)",
        arguments: [
            ("max-age=60", "", 70, .disconnected),
            ("max-age=60, stale-if-error=10", "", 70, .error),
            ("max-age=60, stale-if-error=10", "", 71, .disconnected),
            ("max-age=60", "stale-if-error=10", 70, .error),
            ("max-age=60, must-revalidate, stale-if-error=10", "", 70, .never),
            ("max-age=60, no-cache, stale-if-error=10", "", 70, .never),
            ("max-age=60, stale-if-error=10", "no-cache", 70, .never),
            ("max-age=60, stale-if-error=10", "no-cache", 5, .never),
            ("max-age=60", "max-age=1", 5, .error), ("max-age=60", "", 5, .never),
            ("max-age=60, stale-if-error=10", "only-if-cached", 70, .never),
        ] as [(String, String, Int64, ReuseDecision.StaleOnError)]
    )
    func staleOnError(
        response: String,
        request: String,
        age: Int64,
        expected: ReuseDecision.StaleOnError
    ) {
        let decision = ReuseDecision(
            stored: .make(200, [.cacheControl: response]),
            request: .make(request),
            rules: CacheRules(),
            now: received.advanced(by: .seconds(age))
        )
        #expect(decision.staleOnError == expected)
    }

    @Test("The time to live is what RFC 9211 calls ttl")
    func timeToLive() {
        let stored = ResponseFacts.make(200, [.cacheControl: "max-age=60", .age: "10"])
        let decide = { (age: Int64) in
            ReuseDecision(
                stored: stored,
                request: RequestFacts(),
                rules: CacheRules(),
                now: received.advanced(by: .seconds(age))
            )
        }
        #expect(decide(20).timeToLive == .seconds(30))
        #expect(!decide(20).isStale)
        #expect(decide(100).timeToLive == .seconds(-50))
        #expect(decide(100).isStale)
        #expect(decide(100).forwardReason == .stale)
        #expect(decide(20).forwardReason == nil)
    }
}
