import HTTPCaching
import HTTPTypes
import Testing

@Suite("CurrentAge", .timeLimit(.minutes(10)))
struct CurrentAgeTests {
    @Test(
        "Age is a number, the first of a list",
        arguments: [
            ("0", 0), ("7200", 7200), (" 5 ", 5), ("7200, 0", 7200), ("0, 7200", 0), ("0, 0", 0),
            ("2147483649", 2_147_483_648), ("99999999999999999999", 2_147_483_648), ("abc", nil),
            ("-7200", nil), ("7200.0", nil), ("", nil), (",5", nil), ("7200;foo=bar", nil),
        ] as [(String, Int64?)]
    )
    func parsing(text: String, expected: Int64?) {
        #expect(CurrentAge.parse(text) == expected.map { .seconds($0) })
    }

    /// Columns: `Age`, `Date` relative to receipt, response delay, time since → current age.
    @Test(
        "Worked ages",
        arguments: [
            (nil, nil, 0, 0, 0), (nil, nil, 0, 100, 100), (nil, 0, 0, 100, 100),
            (nil, -7200, 0, 0, 7200), (nil, -7200, 0, 100, 7300), (nil, 7200, 0, 100, 100),
            (1800, 0, 0, 100, 1900), (1800, -7200, 0, 0, 7200), (1800, -600, 0, 0, 1800),
            (nil, 0, 5, 0, 5), (1800, 0, 5, 100, 1905), (nil, -3, 5, 10, 15), (nil, -9, 5, 10, 19),
            // Clocks set back: never younger than on arrival.
            (1800, 0, -50, -100, 1800),
        ] as [(Int64?, Int64?, Int64, Int64, Int64)]
    )
    func ages(age: Int64?, date: Int64?, delay: Int64, later: Int64, expected: Int64) {
        var fields = HTTPFields()
        fields[.age] = age.map(String.init)
        fields[.date] = date.map(WallTime.date)
        let facts = ResponseFacts.make(200, fields, delay: delay)
        let now = received.advanced(by: .seconds(later))
        #expect(CurrentAge.of(facts, at: now) == .seconds(expected))
    }

    @Test("Extreme clocks do not trap")
    func extremes() {
        let ends = [WallTime(nanoseconds: .min), received, WallTime(nanoseconds: .max)]
        for requestTime in ends {
            for responseTime in ends {
                let facts = ResponseFacts(
                    status: 200,
                    fields: [.age: "99999999999", .date: WallTime.date(0)],
                    requestTime: requestTime,
                    responseTime: responseTime
                )
                for now in ends {
                    #expect(CurrentAge.of(facts, at: now) >= .seconds(1 << 31))
                }
            }
        }
    }
}
