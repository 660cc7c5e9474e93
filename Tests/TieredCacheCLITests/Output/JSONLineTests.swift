import HTTPCaching
import Testing
import TieredCache

@testable import TieredCacheCLI

@Suite("JSON lines", .timeLimit(.minutes(10)))
struct JSONLineTests {
    @Test("Scalars")
    func scalars() throws {
        #expect(try JSONLine.text(of: Nullable<Bool>(wrappedValue: nil)) == "null")
        #expect(try JSONLine.text(of: true) == "true")
        #expect(try JSONLine.text(of: false) == "false")
        #expect(try JSONLine.text(of: Int64.min) == "-9223372036854775808")
        #expect(try JSONLine.text(of: 0.25) == "0.25")
        #expect(throws: (any Error).self) { try JSONLine.text(of: Double.infinity) }
        #expect(throws: (any Error).self) { try JSONLine.text(of: Double.nan) }
        #expect(try JSONLine.text(of: "") == "\"\"")
        #expect(try JSONLine.text(of: [Int]()) == "[]")
        #expect(try JSONLine.text(of: [String: Int]()) == "{}")
        #expect(try JSONLine.text(of: [1, nil]) == "[1,null]")
        #expect(try JSONLine.text(of: ["b": "1", "a": "x"]) == #"{"a":"x","b":"1"}"#)
    }

    @Test("Escapes")
    func escapes() throws {
        let plain = "a\"b\\c/\u{E9}\u{1F600}"
        #expect(try JSONLine.text(of: plain) == "\"a\\\"b\\\\c/\u{E9}\u{1F600}\"")
        let controls = "\r\n\t\u{0}\u{1F}\u{7F}"
        #expect(try JSONLine.text(of: controls) == #""\r\n\t\u0000\u001f\u007f""#)
        #expect(try JSONLine.text(of: "\u{85}\u{2028}\u{2029}") == #""\u0085\u2028\u2029""#)
    }

    @Test("No character of the first planes breaks the line, and each is read back")
    func oneLine() throws {
        for value in UInt32(0)..<0x3000 {
            guard let scalar = Unicode.Scalar(value) else { continue }
            let string = String(Character(scalar))
            let text = try JSONLine.text(of: string)
            #expect(!text.contains { $0.isNewline }, "U+\(String(value, radix: 16))")
            #expect(try JSONLine.value(of: text) == string, "U+\(String(value, radix: 16))")
        }
    }

    @Test("get's line")
    func getReport() throws {
        let report = GetReport(
            url: "http://x/",
            status: 206,
            source: "origin",
            bytesFromCache: 3,
            bytesFromOrigin: 4,
            elapsed: .milliseconds(1500)
        )
        let expected =
            #"{"bytes":7,"fromCache":3,"fromOrigin":4,"seconds":1.5,"#
            + #""source":"origin","status":206,"url":"http://x/"}"#
        #expect(try JSONLine.text(of: report) == expected)
    }

    @Test("list's and show's lines")
    func entryReport() throws {
        var report = EntryReport(
            url: "u",
            key: "k",
            status: 200,
            length: nil,
            stored: 5,
            isComplete: false,
            isPinned: true,
            headers: nil
        )
        let start = #"{"complete":false,"#
        let middle = #""held":5,"key":"k","length":"#
        let end = #","pinned":true,"status":200,"url":"u"}"#
        #expect(try JSONLine.text(of: report) == start + middle + "null" + end)
        report.length = 9
        report.headers = [("A", "1"), ("b", "2"), ("a", "3"), ("A", "4")]
        let headers = #""headers":{"a":["1","3","4"],"b":"2"},"#
        #expect(try JSONLine.text(of: report) == start + headers + middle + "9" + end)
    }

    @Test("stats' and verify's lines")
    func sums() throws {
        let stats = try JSONLine.text(of: StatsReport(entries: 1, bytes: 2, limit: 3))
        #expect(stats == #"{"bytes":2,"entries":1,"limit":3}"#)
        let none = MediaCache.LifetimeStatistics(
            since: WallTime(seconds: 0),
            statistics: MediaCache.Statistics()
        )
        let report = StatsReport(entries: 1, bytes: 2, limit: 3, lifetime: none)
        let text = try JSONLine.text(of: report)
        for member in [#""entries":1,"#, #""bytes":2,"#, #""limit":3,"#, #""hitRatio":null"#] {
            #expect(text.contains(member), "\(text)")
        }
        #expect(text.contains(#""since":"1970-01-01T00:00:00.000Z""#))
        #expect(report.lines[2] == "requests    0: none")
        let verify = VerifyReport(entries: 1, blocks: 2, damaged: 3, repaired: 4)
        #expect(
            try JSONLine.text(of: verify)
                == #"{"blocks":2,"damaged":3,"entries":1,"repaired":4}"#
        )
    }
}
