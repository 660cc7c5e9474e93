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
        report.claim("water is wet", holds: true)
        #expect(report.summary == "All 1 claims hold.")
        report.claim("fire is cold", holds: false)
        #expect(report.failedClaims == ["fire is cold"])
        #expect(report.summary == "1 of 2 claims failed: fire is cold")
        #expect(
            lines == [
                "\n1. A step.", "  Words.", "  ok     water is wet", "  FAILED fire is cold",
            ]
        )
    }

    @Test("What the commands print is read back")
    func fields() throws {
        let report = GetReport(
            url: "http://x/?a=\"b\\c,}",
            status: 200,
            source: "disk",
            bytesFromCache: 7,
            bytesFromOrigin: 0,
            elapsed: .milliseconds(250)
        )
        let line = try JSONLine.text(of: report)
        let read = try JSONLine.value(of: line, as: GetReport.self)
        #expect(read == report)
        #expect(read.url == report.url)
        #expect(read.source == "disk")
        #expect(read.status == 200)
        #expect(read.bytes == 7)
        #expect(read.fromOrigin == 0)
        #expect(read.seconds == 0.25)
    }

    @Test("Other text has no members", arguments: ["", "{", "{}", "[1]", "x", "{\"a\"", "{\"a\":"])
    func otherText(line: String) {
        #expect(throws: (any Error).self) { try JSONLine.value(of: line, as: GetReport.self) }
        let outcome = DemoProgram.Outcome(lines: [line], succeeded: true)
        #expect(outcome.report == nil)
    }
}
