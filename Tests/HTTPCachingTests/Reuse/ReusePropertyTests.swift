import HTTPCaching
import HTTPTypes
import Testing

/// Laws that hold for every response and request, over seeded random ones.
@Suite("Caching properties", .timeLimit(.minutes(10)))
struct ReusePropertyTests {
    private static let responseDirectives = [
        "max-age=0", "max-age=10", "max-age=100", "max-age=x", "s-maxage=50", "no-cache",
        "no-store", "private", "public", "must-revalidate", "proxy-revalidate", "immutable",
        "must-understand", "stale-while-revalidate=20", "stale-if-error=20", "no-cache=\"x\"",
    ]
    private static let requestDirectives = [
        "no-cache", "no-store", "max-age=5", "max-age=50", "min-fresh=5", "max-stale",
        "max-stale=10", "only-if-cached", "stale-if-error=5",
    ]
    private static let statuses = [200, 200, 200, 201, 204, 206, 301, 302, 404, 500, 503, 599]

    private struct Exchange {
        var status: Int
        var response: HTTPFields
        var request: HTTPFields
        var policy: CachePolicy

        init(_ random: inout SeededGenerator) {
            status = statuses.randomElement(using: &random) ?? 200
            response = [.date: WallTime.date(Int64.random(in: -50...5, using: &random))]
            request = [:]
            response[.cacheControl] = Self.control(responseDirectives, &random)
            request[.cacheControl] = Self.control(requestDirectives, &random)
            if Bool.random(using: &random) {
                response[.expires] = WallTime.date(Int64.random(in: -50...200, using: &random))
            }
            if Bool.random(using: &random) {
                response[.lastModified] = WallTime.date(-Int64.random(in: 0...2000, using: &random))
            }
            if Bool.random(using: &random) {
                response[.age] = String(Int64.random(in: 0...100, using: &random))
            }
            if Bool.random(using: &random) {
                request[.authorization] = "Basic eA=="
            }
            policy =
                Bool.random(using: &random)
                ? .protocolDefault : CachePolicy.allCases.randomElement(using: &random) ?? .reload
        }

        private static func control(
            _ directives: [String],
            _ random: inout SeededGenerator
        ) -> String? {
            let count = Int.random(in: 0...3, using: &random)
            guard count > 0 else { return nil }
            return (0..<count).map { _ in directives.randomElement(using: &random) ?? "" }
                .joined(separator: ", ")
        }

        func decision(after seconds: Int64, isShared: Bool) -> ReuseDecision {
            ReuseDecision(
                stored: .make(status, response),
                request: RequestFacts(fields: request, policy: policy),
                rules: CacheRules(isShared: isShared),
                now: received.advanced(by: .seconds(seconds))
            )
        }

        func storability(isShared: Bool) -> Storability {
            .decide(
                response: .make(status, response),
                request: RequestFacts(fields: request, policy: policy),
                canCombine: true,
                rules: CacheRules(isShared: isShared)
            )
        }
    }

    @Test("An unknown directive or field never changes a decision")
    func unknownChangesNothing() throws {
        var random = SeededGenerator(seed: 20)
        let name = try #require(HTTPField.Name("X-Unknown"))
        for round in 0..<3_000 {
            let exchange = Exchange(&random)
            var noisy = exchange
            noisy.response[name] = "no-store, max-age=1"
            noisy.request[name] = "no-cache"
            for directive in ["foo", "foo=bar", "foo=\"no-store, no-cache\""] {
                noisy.response[.cacheControl] = added(directive, to: exchange.response)
                noisy.request[.cacheControl] = added(directive, to: exchange.request)
                let shared = Bool.random(using: &random)
                let age = Int64.random(in: 0...150, using: &random)
                #expect(
                    noisy.decision(after: age, isShared: shared)
                        == exchange.decision(after: age, isShared: shared),
                    "seed 20, round \(round): \(exchange)"
                )
                #expect(
                    noisy.storability(isShared: shared) == exchange.storability(isShared: shared),
                    "seed 20, round \(round): \(exchange)"
                )
            }
        }
    }

    private func added(_ directive: String, to fields: HTTPFields) -> String {
        fields[.cacheControl].map { "\(directive), \($0)" } ?? directive
    }

    @Test("Time moving forward never makes a stale response fresh")
    func timeNeverFreshens() {
        var random = SeededGenerator(seed: 21)
        for round in 0..<2_000 {
            let exchange = Exchange(&random)
            let shared = Bool.random(using: &random)
            var wasStale = false
            var lastTimeToLive = Duration.seconds(Int64.max / 1_000_000_000)
            for age in stride(from: Int64(-20), through: 200, by: 11) {
                let decision = exchange.decision(after: age, isShared: shared)
                #expect(!wasStale || decision.isStale, "seed 21, round \(round): \(exchange)")
                #expect(decision.timeToLive <= lastTimeToLive, "seed 21, round \(round)")
                #expect(decision.reason != .fresh || !decision.isStale, "seed 21, round \(round)")
                wasStale = decision.isStale
                lastTimeToLive = decision.timeToLive
            }
        }
    }

    @Test("A private cache stores at least what a shared one does")
    func privateStoresMore() {
        var random = SeededGenerator(seed: 22)
        var storedByShared = 0
        for round in 0..<20_000 {
            let exchange = Exchange(&random)
            guard exchange.storability(isShared: true) == .storable else { continue }
            storedByShared += 1
            #expect(
                exchange.storability(isShared: false) == .storable,
                "seed 22, round \(round): \(exchange)"
            )
        }
        #expect(storedByShared > 1_000)
    }

    @Test("What must not be served stale is never used stale by the protocol's rules")
    func prohibitions() {
        var random = SeededGenerator(seed: 23)
        for round in 0..<10_000 {
            let exchange = Exchange(&random)
            guard exchange.policy == .protocolDefault,
                exchange.response[.cacheControl]?.contains("must-revalidate") == true
            else { continue }
            let decision = exchange.decision(after: 150, isShared: false)
            guard decision.isStale else { continue }
            #expect(
                decision.action == .validate || decision.action == .refuse,
                "seed 23, round \(round): \(exchange)"
            )
            #expect(decision.staleOnError == .never, "seed 23, round \(round): \(exchange)")
        }
    }
}
