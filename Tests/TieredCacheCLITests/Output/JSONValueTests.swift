import HTTPCaching
import Testing
import TieredCache

@testable import TieredCacheCLI

@Suite("JSON lines", .timeLimit(.minutes(10)))
struct JSONValueTests {
    @Test(
        "Scalars",
        arguments: [
            (.null, "null"), (.bool(true), "true"), (.bool(false), "false"),
            (.integer(.min), "-9223372036854775808"), (.number(0.25), "0.25"),
            (.number(.infinity), "null"), (.number(.nan), "null"), (.string(""), "\"\""),
            (.array([]), "[]"), (.object([]), "{}"),
            (.array([.integer(1), .null]), "[1,null]"),
            (.object([.init("b", .integer(1)), .init("a", .string("x"))]), #"{"b":1,"a":"x"}"#),
        ] as [(JSONValue, String)]
    )
    func scalars(value: JSONValue, expected: String) {
        #expect(value.text == expected)
    }

    @Test("Escapes")
    func escapes() {
        #expect(
            JSONValue.string("a\"b\\c/\u{E9}\u{1F600}").text == "\"a\\\"b\\\\c/\u{E9}\u{1F600}\""
        )
        #expect(JSONValue.string("\r\n\t\u{0}\u{1F}\u{7F}").text == #""\r\n\t\u0000\u001f\u007f""#)
        #expect(JSONValue.string("\u{85}\u{2028}\u{2029}").text == #""\u0085\u2028\u2029""#)
    }

    @Test("No character of the first planes breaks the line")
    func oneLine() {
        for value in UInt32(0)..<0x3000 {
            guard let scalar = Unicode.Scalar(value) else { continue }
            let text = JSONValue.string(String(Character(scalar))).text
            #expect(!text.contains { $0.isNewline }, "U+\(String(value, radix: 16))")
        }
    }

    @Test("get's line, in the documented order")
    func getReport() {
        let report = GetReport(
            url: "http://x/",
            status: 206,
            source: "origin",
            bytesFromCache: 3,
            bytesFromOrigin: 4,
            elapsed: .milliseconds(1500)
        )
        let expected =
            #"{"url":"http://x/","status":206,"source":"origin","bytes":7,"fromCache":3,"#
            + #""fromOrigin":4,"seconds":1.5}"#
        #expect(report.json.text == expected)
    }

    @Test("list's and show's lines")
    func entryReport() {
        var report = EntryReport(
            url: "u",
            key: "k",
            status: 200,
            length: nil,
            held: 5,
            isComplete: false,
            isPinned: true,
            headers: nil
        )
        let start = #"{"url":"u","key":"k","status":200,"#
        let end = #""held":5,"complete":false,"pinned":true"#
        #expect(report.json.text == start + #""length":null,"# + end + "}")
        report.length = 9
        report.headers = [("A", "1"), ("b", "2"), ("a", "3"), ("A", "4")]
        let headers = #","headers":{"a":["1","3","4"],"b":"2"}}"#
        #expect(report.json.text == start + #""length":9,"# + end + headers)
    }

    @Test("stats' and verify's lines")
    func sums() {
        let stats = StatsReport(entries: 1, bytes: 2, limit: 3).json.text
        #expect(stats == #"{"entries":1,"bytes":2,"limit":3}"#)
        let none = LifetimeStatistics(since: WallTime(seconds: 0), statistics: Statistics())
        let report = StatsReport(entries: 1, bytes: 2, limit: 3, lifetime: none)
        let start = #"{"entries":1,"bytes":2,"limit":3,"since":"1970-01-01T00:00:00.000Z","#
        #expect(report.json.text.hasPrefix(start))
        #expect(report.json.text.contains(#""hitRatio":null"#))
        #expect(report.lines[2] == "requests    0: none")
        let verify = VerifyReport(entries: 1, blocks: 2, damaged: 3, repaired: 4).json.text
        #expect(verify == #"{"entries":1,"blocks":2,"damaged":3,"repaired":4}"#)
    }
}
