import HTTPCaching
import Testing

@Suite("Timestamps", .timeLimit(.minutes(10)))
struct WallTimeTimestampTests {
    @Test(
        "an instant is written in UTC to the millisecond, and read back",
        arguments: [
            (0, "1970-01-01T00:00:00.000Z"),
            (-1_000_000, "1969-12-31T23:59:59.999Z"),
            (1_767_225_600_123_000_000, "2026-01-01T00:00:00.123Z"),
            (951_782_399_999_000_000, "2000-02-28T23:59:59.999Z"),
            (951_868_800_000_000_000, "2000-03-01T00:00:00.000Z"),
        ] as [(Int64, String)]
    )
    func both(nanoseconds: Int64, text: String) {
        #expect(WallTime(nanoseconds: nanoseconds).timestamp == text)
        #expect(WallTime(timestamp: text)?.nanoseconds == nanoseconds)
    }

    @Test("the ends of the range are written too")
    func ends() {
        #expect(WallTime(nanoseconds: .max).timestamp == "2262-04-11T23:47:16.854Z")
        #expect(WallTime(nanoseconds: .min).timestamp.hasPrefix("1677-09-21T00:12:43."))
    }

    @Test(
        "anything else is none",
        arguments: [
            "", "2026-01-01", "2026-01-01 00:00:00.000Z", "2026-13-01T00:00:00.000Z",
            "2026-02-30T00:00:00.000Z", "2026-01-01T24:00:00.000Z", "2026-01-01T00:60:00.000Z",
            "2026-01-01T00:00:60.000Z", "2026-01-01T00:00:00.000+", "２026-01-01T00:00:00.000Z",
        ]
    )
    func wrong(text: String) {
        #expect(WallTime(timestamp: text) == nil)
    }
}
