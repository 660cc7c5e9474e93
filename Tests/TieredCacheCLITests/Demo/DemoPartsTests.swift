import Testing

@testable import TieredCacheCLI

@Suite("Parts of the demo", .timeLimit(.minutes(10)))
struct DemoPartsTests {
    @Test("A claim that fails is said, counted and repeated at the end")
    func claims() {
        var lines: [String] = []
        var report = DemoReport { lines.append($0) }
        report.heading("1. A step.")
        report.say("Words.")
        report.claim("water is wet", true)
        #expect(report.summary == "All 1 claims hold.")
        report.claim("fire is cold", false)
        #expect(report.failedClaims == ["fire is cold"])
        #expect(report.summary == "1 of 2 claims failed: fire is cold")
        #expect(
            lines == [
                "\n1. A step.", "  Words.", "  ok     water is wet", "  FAILED fire is cold",
            ]
        )
    }

    @Test("What the commands print is read back")
    func fields() {
        let report = GetReport(
            url: "http://x/?a=\"b\\c,}",
            status: 200,
            source: "disk",
            bytesFromCache: 7,
            bytesFromOrigin: 0,
            elapsed: .milliseconds(250)
        )
        let fields = JSONFields(report.json.text)
        #expect(fields.text("url") == report.url)
        #expect(fields.text("source") == "disk")
        #expect(fields.integer("status") == 200)
        #expect(fields.integer("bytes") == 7)
        #expect(fields.integer("fromOrigin") == 0)
        #expect(fields.text("seconds") == "0.25")
        #expect(fields.text("none") == nil)
    }

    @Test("Other text has no members", arguments: ["", "{", "{}", "[1]", "x", "{\"a\"", "{\"a\":"])
    func otherText(line: String) {
        #expect(JSONFields(line).integer("a") == nil)
    }
}
