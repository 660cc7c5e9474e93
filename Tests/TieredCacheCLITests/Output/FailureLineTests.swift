import Testing

@testable import TieredCacheCLI

@Suite("A line per URL that failed", .timeLimit(.minutes(10)))
struct FailureLineTests {
    @Test(
        "The URL is named once, whole",
        arguments: [
            ("http://a/b", "cannot download http://a/b: the origin is away"),
            ("http://a/b", "http://a/b: the origin is away"), ("http://a/b", "the origin is away"),
            ("http://a/b?c=1", "cannot download http://a/b?…: the origin is away"),
            ("http://a/b?c=1", "http://a/b?...: the origin is away"),
        ]
    )
    func once(url: String, message: String) {
        #expect(FailureLine(url: url, message: message).text == "\(url): the origin is away")
    }

    @Test("A status reads on after the URL")
    func status() {
        let line = FailureLine(
            url: "http://a/b?c",
            message: "http://a/b?... answered with status 404"
        )
        #expect(line.text == "http://a/b?c: answered with status 404")
    }

    @Test("What only begins with the URL is another")
    func another() {
        let line = FailureLine(url: "http://a/b", message: "http://a/bc: gone")
        #expect(line.text == "http://a/b: http://a/bc: gone")
    }
}
