import HTTPCaching
import HTTPTypes

/// The rows of HTTP's rules: what a hit has to decide.
enum RuleRows {
    static func make() -> [Row] {
        [decision()]
    }

    /// A decision about fields that were parsed when the response was stored, beside one that
    /// parses them again.
    private static func decision() -> Row {
        let received = WallTime(seconds: 1_800_000_000)
        let fields: HTTPFields = [
            .cacheControl: "public, max-age=3600, stale-while-revalidate=60",
            .date: HTTPDate.format(received), .eTag: "\"5f2d-9a\"",
            .lastModified: "Thu, 01 Jan 2026 00:00:00 GMT",
        ]
        let stored = ResponseFacts(
            status: 200,
            fields: fields,
            requestTime: received,
            responseTime: received
        )
        let request = RequestFacts()
        return Row(
            name: "freshness decision",
            target: nil,
            count: 100_000,
            contenders: [
                Contender("on a parsed response") { count in
                    for step in 0..<count {
                        blackHole(decide(stored, request, at: received, step))
                    }
                },
                Contender("parsing the response again") { count in
                    for step in 0..<count {
                        let parsed = ResponseFacts(
                            status: 200,
                            fields: fields,
                            requestTime: received,
                            responseTime: received
                        )
                        blackHole(decide(parsed, request, at: received, step))
                    }
                },
            ]
        )
    }

    @inline(never)
    private static func decide(
        _ stored: ResponseFacts,
        _ request: RequestFacts,
        at time: WallTime,
        _ step: Int
    ) -> ReuseDecision {
        ReuseDecision(
            stored: stored,
            request: request,
            rules: CacheRules(),
            now: time.advanced(by: .seconds(step & 0xFFF))
        )
    }
}
