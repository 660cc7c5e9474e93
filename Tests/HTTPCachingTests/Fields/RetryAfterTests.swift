import HTTPCaching
import HTTPTypes
import Testing

@Suite("RetryAfter", .timeLimit(.minutes(10)))
struct RetryAfterTests {
    private let now = WallTime(seconds: 784_111_777)  // Sun, 06 Nov 1994 08:49:37 GMT

    @Test(
        "Seconds and dates",
        arguments: [
            ("0", Duration.zero), ("120", .seconds(120)), (" 5 ", .seconds(5)),
            ("99999999999999999999", .seconds(600)), ("3601", .seconds(600)),
            ("Sun, 06 Nov 1994 08:50:37 GMT", .seconds(60)),
            ("Sun, 06 Nov 1994 08:49:36 GMT", .zero),
            ("Fri, 31 Dec 9999 23:59:59 GMT", .seconds(600)),
        ]
    )
    func valid(text: String, expected: Duration) {
        #expect(RetryAfter.delay(text, now: now, maximum: .seconds(600)) == expected)
    }

    @Test("Malformed values", arguments: ["", "-1", "1.5", "soon", "5 s", "1, 2"])
    func malformed(text: String) {
        #expect(RetryAfter.delay(text, now: now, maximum: .seconds(600)) == nil)
    }

    @Test("From the fields of a response")
    func fields() {
        #expect(RetryAfter.delay(in: [:], now: now, maximum: .seconds(1)) == nil)
        let fields: HTTPFields = [.retryAfter: "7"]
        #expect(RetryAfter.delay(in: fields, now: now, maximum: .seconds(60)) == .seconds(7))
    }
}
