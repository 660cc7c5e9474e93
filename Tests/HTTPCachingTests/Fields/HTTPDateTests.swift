import HTTPCaching
import Testing

@Suite("HTTPDate", .timeLimit(.minutes(10)))
struct HTTPDateTests {
    /// 2026-11-21T00:00:00Z.
    private let now = WallTime(seconds: 1_795_219_200)

    @Test(
        "All three formats are read",
        arguments: [
            ("Sun, 06 Nov 1994 08:49:37 GMT", 784_111_777),
            ("Sunday, 06-Nov-94 08:49:37 GMT", 784_111_777),
            ("Sun Nov  6 08:49:37 1994", 784_111_777),
            ("Sun Nov 06 08:49:37 1994", 784_111_777),
            ("Thu, 01 Jan 1970 00:00:00 GMT", 0),
            ("Wed, 31 Dec 1969 23:59:59 GMT", -1),
            ("Thu, 29 Feb 2024 12:00:00 GMT", 1_709_208_000),
            ("Sat, 31 Dec 2016 23:59:60 GMT", 1_483_228_800),
            ("Tue, 19 Jan 2038 14:14:08 GMT", 2_147_523_248),
            ("Thursday, 18-Aug-50 02:01:18 GMT", 2_544_400_878),
            ("  Sun, 06 Nov 1994 08:49:37 GMT\t", 784_111_777),
            ("SUN, 06 nov 1994 08:49:37 gmt", 784_111_777),
            // The name of the day is not compared with the date.
            ("Mon, 06 Nov 1994 08:49:37 GMT", 784_111_777),
        ]
    )
    func valid(text: String, seconds: Int64) {
        #expect(HTTPDate.parse(text, now: now) == WallTime(seconds: seconds))
    }

    @Test(
        "What is not exactly a date is none",
        arguments: [
            "", "0", "-1", "now", "Sun,", "Sun", "Thu, 18 Aug 2050 02:01:18 UTC",
            "Thu, 18 Aug 2050 02:01:18 AEST", "Thu, 18 Aug 2050 02:01:18",
            "Thu, 18 Aug 50 02:01:18 GMT", "Thu 18 Aug 2050 02:01:18 GMT",
            "Thu, 18  Aug  2050 02:01:18 GMT", "Thu, 18-Aug-2050 02:01:18 GMT",
            "Thu, 18 Aug 2050 02.01.18 GMT", "Thu, 18 Aug 2050 2:01:18 GMT",
            "Thu, 18 Aug 2050 02:01:18 GMT, Thu, 18 Aug 2050 02:01:19 GMT",
            "Thu, 31 Feb 2050 02:01:18 GMT", "Thu, 00 Feb 2050 02:01:18 GMT",
            "Wed, 29 Feb 2023 02:01:18 GMT", "Thu, 18 Aug 2050 24:00:00 GMT",
            "Thu, 18 Aug 2050 23:60:00 GMT", "Thu, 18 Aug 2050 23:00:61 GMT",
            "Foo, 18 Aug 2050 02:01:18 GMT", "Thu, 18 Foo 2050 02:01:18 GMT",
            "Thursday, 18 Aug 2050 02:01:18 GMT", "Sun Nov 6 08:49:37 1994",
            "Sun Nov  6 08:49:37 94", "Thu, 18 Aug 99999999999999999999 02:01:18 GMT",
            "Thu, 18 Aug 2050 02:01:18 GMT+1",
        ]
    )
    func invalid(text: String) {
        #expect(HTTPDate.parse(text, now: now) == nil)
    }

    @Test(
        "A two-digit year lies at most fifty years ahead",
        arguments: [("76", "2076"), ("77", "1977"), ("26", "2026"), ("99", "1999"), ("00", "2000")]
    )
    func twoDigitYear(short: String, long: String) {
        let expected = HTTPDate.parse("Mon, 01 Jan \(long) 00:00:00 GMT", now: now)
        #expect(expected != nil)
        #expect(HTTPDate.parse("Monday, 01-Jan-\(short) 00:00:00 GMT", now: now) == expected)
    }

    @Test("Years beyond the range of WallTime saturate")
    func saturation() {
        let late = HTTPDate.parse("Fri, 31 Dec 9999 23:59:59 GMT", now: now)
        #expect(late == WallTime(nanoseconds: .max))
        let early = HTTPDate.parse("Sat, 01 Jan 0000 00:00:00 GMT", now: now)
        #expect(early == WallTime(nanoseconds: .min))
    }

    @Test("What is written is read again, over the whole range")
    func roundTrip() {
        var random = SeededGenerator(seed: 1)
        let range: ClosedRange<Int64> = -9_200_000_000...9_200_000_000
        for _ in 0..<5_000 {
            let time = WallTime(seconds: Int64.random(in: range, using: &random))
            let text = HTTPDate.format(time)
            #expect(HTTPDate.parse(text, now: now) == time, "\(text)")
        }
        #expect(HTTPDate.format(WallTime(nanoseconds: -1)) == "Wed, 31 Dec 1969 23:59:59 GMT")
        #expect(HTTPDate.format(WallTime(seconds: 784_111_777)) == "Sun, 06 Nov 1994 08:49:37 GMT")
    }

    @Test("Hostile texts never trap")
    func fuzz() {
        var random = SeededGenerator(seed: 2)
        let pieces = [
            "Sun", "Sunday", ", ", " ", "06", "6", "-", "Nov", "nov", "1994", "94", "08:49:37",
            ":", "GMT", "99999999999999999999", "é",
        ]
        for _ in 0..<40_000 {
            let text = random.text(of: pieces, count: 12)
            if let time = HTTPDate.parse(text, now: now) {
                #expect(HTTPDate.parse(HTTPDate.format(time), now: now) == time, "\(text)")
            }
        }
    }
}
