import ArgumentParser
import HTTPTypes
import Testing

@testable import TieredCacheCLI

@Suite("Argument values", .timeLimit(.minutes(10)))
struct ArgumentTests {
    @Test(
        "Ranges",
        arguments: [
            ("0-0", .bounded(0, 0)), ("5-1023", .bounded(5, 1023)), ("7-", .from(7)),
            ("-500", .last(500)), ("9223372036854775807-", .from(.max)),
            ("", nil), ("-", nil), ("-0", nil), ("5", nil), ("5-4", nil), ("a-b", nil),
            ("1-2-3", nil), (" 1-2", nil), ("+1-2", nil), ("1-x", nil),
            ("9223372036854775808-", nil), ("0-1,3-4", nil), ("\u{0661}-", nil),
        ] as [(String, RangeArgument?)]
    )
    func ranges(text: String, expected: RangeArgument?) {
        #expect(RangeArgument(argument: text) == expected)
    }

    @Test(
        "Sizes",
        arguments: [
            ("500000", 500_000), ("0", 0), ("64MiB", 64 << 20), ("2GiB", 2 << 30),
            ("1.5KiB", 1536), ("10kB", 10_000), ("3mb", 3_000_000), ("4k", 4096), ("7B", 7),
            ("1TiB", 1 << 40), ("9223372036854775807", .max),
            ("", nil), ("MiB", nil), ("-1", nil), ("5XB", nil), ("1.5", nil), ("1.2.3k", nil),
            ("9223372036854775808", nil), ("9999999TiB", nil), ("1e3", nil), ("5 MiB", 5 << 20),
            (".", nil), (".k", nil),
        ] as [(String, Int64?)]
    )
    func sizes(text: String, expected: Int64?) {
        #expect(ByteSize(argument: text)?.bytes == expected)
    }

    @Test(
        "Times",
        arguments: [
            ("90s", 90), ("15m", 900), ("2h", 7200), ("3d", 259_200), ("7", 7), ("0s", 0),
            ("", nil), ("s", nil), ("-1s", nil), ("1.5h", nil), ("1w", nil), ("1 h", nil),
            ("99999999999d", 8_639_999_999_913_600), ("999999999999d", nil),
        ] as [(String, Int64?)]
    )
    func times(text: String, expected: Int64?) {
        #expect(TimeSpan(argument: text)?.duration == expected.map { .seconds($0) })
    }

    @Test(
        "Headers",
        arguments: [
            ("A: b", "A", "b"),
            ("X-Long-Name:value: with colon", "X-Long-Name", "value: with colon"),
            ("Empty:", "Empty", ""), ("Tab:\tb", "Tab", "b"),
        ]
    )
    func headers(text: String, name: String, value: String) throws {
        let header = try #require(HeaderArgument(argument: text))
        #expect(header.field.name.rawName == name)
        #expect(header.field.value == value)
    }

    @Test(
        "Headers that no request may carry",
        arguments: ["", "A", ": b", "A b: c", "A: b\r\nC: d", "A: b\u{0}", "A: \u{1}", "\u{E4}: b"]
    )
    func badHeaders(text: String) {
        #expect(HeaderArgument(argument: text) == nil)
    }

    @Test("Headers keep their order")
    func headerOrder() throws {
        let arguments = ["--header", "B: 1", "--header", "A: 2", "--header", "B: -3"]
        let command = try #require(
            RootCommand.parseAsRoot(["get", "http://x/"] + arguments) as? GetCommand
        )
        let fields = command.header.fields
        #expect(fields.map(\.value) == ["1", "2", "-3"])
    }
}
