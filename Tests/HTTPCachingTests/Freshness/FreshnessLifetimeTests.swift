import HTTPCaching
import HTTPTypes
import Testing

@Suite("FreshnessLifetime", .timeLimit(.minutes(10)))
struct FreshnessLifetimeTests {
    private struct Case {
        var control: String?
        var expires: String?
        var modified: Int64?
        var date: Int64? = 0
        var status = 200
        var isShared = false
        var application: Int64?
        var expected: Int64
        var source: FreshnessLifetime.Source
    }

    private let day: Int64 = 86_400

    private var cases: [Case] {
        [
            Case(control: "max-age=60", expected: 60, source: .explicit),
            Case(control: "max-age=0", expires: .date(3600), expected: 0, source: .explicit),
            Case(control: "max-age=60", expires: .date(-3600), expected: 60, source: .explicit),
            Case(control: "max-age=60", expires: "0", expected: 60, source: .explicit),
            Case(control: "s-maxage=60", expected: 0, source: .none),
            Case(control: "s-maxage=60", isShared: true, expected: 60, source: .explicit),
            Case(control: "s-maxage=60, max-age=1", expected: 1, source: .explicit),
            Case(
                control: "s-maxage=60, max-age=1",
                expires: .date(-10),
                isShared: true,
                expected: 60,
                source: .explicit
            ),
            Case(control: "s-maxage=1, max-age=60", isShared: true, expected: 1, source: .explicit),
            Case(expires: .date(3600), expected: 3600, source: .explicit),
            Case(expires: .date(3600), date: -600, expected: 4200, source: .explicit),
            Case(expires: .date(3600), date: nil, expected: 3600, source: .explicit),
            Case(expires: .date(-1), expected: 0, source: .explicit),
            Case(expires: "0", modified: -10 * day, expected: 0, source: .explicit),
            Case(
                expires: .date(60) + ", " + .date(60),
                modified: -day,
                expected: 0,
                source: .explicit
            ),
            Case(modified: -1000, expected: 100, source: .heuristic),
            Case(modified: -1000 * day, expected: 7 * day, source: .heuristic),
            Case(modified: 1000, expected: 0, source: .heuristic),
            Case(modified: -1000, date: -500, expected: 50, source: .heuristic),
            Case(modified: -1000, application: 5, expected: 5, source: .application),
            Case(application: 5, expected: 5, source: .application),
            Case(application: -5, expected: 0, source: .application),
            Case(control: "max-age=1", application: 5, expected: 1, source: .explicit),
            Case(expires: "0", application: 5, expected: 0, source: .explicit),
            Case(status: 404, application: 5, expected: 0, source: .none),
            Case(modified: -1000, status: 404, expected: 100, source: .heuristic),
            Case(modified: -1000, status: 201, expected: 0, source: .none),
            Case(
                control: "public",
                modified: -1000,
                status: 599,
                expected: 100,
                source: .heuristic
            ),
            Case(status: 302, application: 5, expected: 0, source: .none),
            Case(expected: 0, source: .none),
        ]
    }

    @Test("Worked lifetimes")
    func lifetimes() {
        for (index, entry) in cases.enumerated() {
            var fields = HTTPFields()
            fields[.cacheControl] = entry.control
            fields[.expires] = entry.expires
            fields[.lastModified] = entry.modified.map(WallTime.date)
            fields[.date] = entry.date.map(WallTime.date)
            let rules = CacheRules(
                isShared: entry.isShared,
                applicationLifetime: entry.application.map { .seconds($0) }
            )
            let lifetime = FreshnessLifetime(of: .make(entry.status, fields), rules: rules)
            #expect(lifetime.duration == .seconds(entry.expected), "case \(index): \(entry)")
            #expect(lifetime.source == entry.source, "case \(index): \(entry)")
        }
    }

    @Test(
        "Heuristics are for the statuses that allow them",
        arguments: [200, 203, 204, 206, 300, 301, 308, 404, 405, 410, 414, 501]
    )
    func heuristicStatus(status: Int) {
        #expect(StatusCode.isHeuristicallyCacheable(status))
        #expect(StatusCode.isUnderstood(status))
    }

    @Test("And for no others", arguments: [201, 202, 302, 303, 307, 400, 403, 500, 502, 503, 599])
    func otherStatus(status: Int) {
        #expect(!StatusCode.isHeuristicallyCacheable(status))
    }

    @Test("Pragma: no-cache in a response forbids to guess, not to obey")
    func pragma() throws {
        let name = try #require(HTTPField.Name("Pragma"))
        let silent: HTTPFields = [name: "no-cache", .lastModified: .date(-1000), .date: .date(0)]
        let rules = CacheRules(applicationLifetime: .seconds(5))
        #expect(FreshnessLifetime(of: .make(200, silent), rules: rules).duration == .zero)
        let explicit: HTTPFields = [name: "no-cache", .cacheControl: "max-age=7"]
        let lifetime = FreshnessLifetime(of: .make(200, explicit), rules: rules)
        #expect(lifetime.duration == .seconds(7))
    }
}

extension String {
    fileprivate static func date(_ seconds: Int64) -> String { WallTime.date(seconds) }

    @Test("No lifetime is guessed for what may be one client's own")
    func personal() {
        let silent: HTTPFields = [.lastModified: .date(-1000), .date: .date(0)]
        var setting = silent
        setting[.setCookie] = "a=b"
        for rules in [
            CacheRules(), CacheRules(isShared: true), CacheRules(applicationLifetime: .seconds(5)),
        ] {
            func lifetime(_ fields: HTTPFields, _ isPersonal: Bool) -> FreshnessLifetime {
                let facts = ResponseFacts(
                    status: 200,
                    fields: fields,
                    requestTime: received,
                    responseTime: received,
                    isPersonal: isPersonal
                )
                return FreshnessLifetime(of: facts, rules: rules)
            }
            #expect(lifetime(silent, false).duration > .zero)
            #expect(lifetime(silent, true).source == .none)
            #expect(lifetime(setting, false).source == .none)
            setting[.cacheControl] = "max-age=7"
            #expect(lifetime(setting, true).duration == .seconds(7))
            setting[.cacheControl] = nil
        }
    }
}
