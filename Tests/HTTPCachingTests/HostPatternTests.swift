import Testing

@testable import HTTPCaching

@Suite(.timeLimit(.minutes(1)))
struct HostPatternTests {
    @Test(
        "A pattern matches what people expect of it",
        arguments: [
            ("example.org", "http://example.org/", true),
            ("example.org", "https://a.b.example.org:8443/", true),
            ("example.org", "http://xexample.org/", false),
            ("Example.ORG.", "http://example.org/", true),
            ("example.org", "http://example.org./", true),
            (".example.org", "http://example.org/", true),
            (".example.org", "http://a.example.org/", true),
            (".example.org", "http://xexample.org/", false),
            ("*.example.org", "http://a.example.org/", true),
            ("example.org:8080", "http://a.example.org:8080/", true),
            ("example.org:8080", "http://example.org/", false),
            (".example.org:80", "http://example.org/", true),
            ("example.org:80", "https://example.org/", false),
            ("example.org:443", "https://example.org/", true),
            ("127.0.0.1:8080", "http://127.0.0.1:8080/", true),
            ("127.0.0.1:8080", "http://127.0.0.1:8081/", false),
            ("::1", "http://[::1]:8080/", true),
            ("[::1]", "http://[::1]/", true),
            ("[::1]:8080", "http://[::1]:8080/", true),
            ("[::1]:8080", "http://[::1]/", false),
            ("*", "https://any.example:1/", true),
            ("*:8080", "http://any.example:8080/", true),
            ("*:8080", "http://any.example/", false),
        ]
    )
    func matches(text: String, url: String, isMatch: Bool) throws {
        let pattern = try #require(HostPattern(text))
        #expect(pattern.matches(try TargetURI(url).origin) == isMatch)
    }

    @Test(
        "What can match no host is none",
        arguments: [
            "", ".", "..", "..a", "**", "*a", "a.*", "a*", "*.", ":80", "a:", "a:0", "a:65536",
            "a:x",
            "a:80:81", "http://a", "http://a/", "a/b", "a?", "a#", "u@a", "a b", "\u{e4}.example",
            "\u{301}", "[::1", "::1]", "[]", "a\\b", "a%41", "a\u{0}",
        ]
    )
    func refusals(text: String) {
        #expect(HostPattern(text) == nil)
    }
}
