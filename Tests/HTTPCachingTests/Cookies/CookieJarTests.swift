import HTTPTypes
import Testing

@testable import HTTPCaching

/// RFC 6265 §5.
@Suite("Cookies", .timeLimit(.minutes(10)))
struct CookieJarTests {
    private static let now = WallTime(seconds: 1_700_000_000)

    private func jar(
        _ values: [String],
        from url: String,
        then later: Duration = .zero
    ) throws -> CookieJar {
        var jar = CookieJar()
        let target = try TargetURI(url)
        for value in values {
            jar.take([.setCookie: value], from: target, at: Self.now)
        }
        jar.take([:], from: target, at: Self.now.advanced(by: later))
        return jar
    }

    @Test(
        "Which URLs get a cookie",
        arguments: [
            // Host and Domain.
            ("a=1", "http://h.example/", "http://h.example/x", true),
            ("a=1", "http://h.example/", "http://h.example:8080/x", true),
            ("a=1", "http://h.example/", "http://x.h.example/", false),
            ("a=1; Domain=h.example", "http://h.example/", "http://x.h.example/", false),
            ("a=1; domain = .EXAMPLE.org", "http://w.example.org/", "http://c.example.org/", true),
            ("a=1; Domain=example.org", "http://w.example.org/", "http://example.org/", true),
            ("a=1; Domain=example.org", "http://w.example.org/", "http://badexample.org/", false),
            ("a=1; Domain=example.org", "http://evil.test/", "http://example.org/", false),
            ("a=1; Domain=x.example.org", "http://example.org/", "http://x.example.org/", false),
            ("a=1; Domain=org", "http://example.org/", "http://example.org/", false),
            ("a=1; Domain=", "http://h.example/", "http://h.example/", true),
            ("a=1; Domain=0.0.1", "http://127.0.0.1/", "http://127.0.0.1/", false),
            ("a=1; Domain=127.0.0.1", "http://127.0.0.1/", "http://127.0.0.1/", true),
            ("a=1", "http://[::1]/", "http://[::1]/", true),
            // Path.
            ("a=1", "http://h/x/y", "http://h/x/z", true),
            ("a=1", "http://h/x/y", "http://h/x", true),
            ("a=1", "http://h/x/y", "http://h/xy", false),
            ("a=1", "http://h/x", "http://h/z", true),
            ("a=1; Path=/x", "http://h/q", "http://h/x/z?a", true),
            ("a=1; Path=/x", "http://h/q", "http://h/xz", false),
            ("a=1; Path=/x/", "http://h/q", "http://h/x", false),
            ("a=1; Path=x", "http://h/q/r", "http://h/q/s", true),
            // Secure, and where it comes from.
            ("a=1; Secure", "https://h/", "https://h/", true),
            ("a=1; Secure", "https://h/", "http://h/", false),
            ("a=1; secure", "http://h/", "https://h/", false),
            ("a=1; HttpOnly; SameSite=Strict; X", "http://h/", "https://h/", true),
            // Syntax.
            ("a", "http://h/", "http://h/", false), ("=1", "http://h/", "http://h/", false),
            (" a\t= 1 ", "http://h/", "http://h/", true), ("", "http://h/", "http://h/", false),
            ("a=1;;=;Path", "http://h/", "http://h/", true),
        ]
    )
    func reach(_ value: String, _ from: String, _ to: String, _ isSent: Bool) throws {
        let field = try jar([value], from: from).field(for: TargetURI(to))
        #expect(field == (isSent ? "a=1" : nil))
    }

    @Test(
        "When a cookie ends: Max-Age before Expires; what cannot be read says nothing",
        arguments: [
            ("Max-Age=10", 9, true), ("Max-Age=10", 10, false), ("Max-Age=0", 0, false),
            ("Max-Age=-1", 0, false), ("Max-Age=-99999999999999999999", 0, false),
            ("Max-Age=99999999999999999999", 1000, true), ("Max-Age=x; Max-Age=1y", 1000, true),
            ("Max-Age=10; Expires=Thu, 01 Jan 1970 00:00:00 GMT", 5, true),
            ("Expires=Thu, 01-Jan-1970 00:00:01 GMT", 0, false),
            ("Expires=Thu, 01 Jan 70 00:00:01", 0, false),
            ("Expires=Tue, 14 Nov 2023 22:13:25 GMT", 4, true),
            ("Expires=Tue, 14 Nov 2023 22:13:25 GMT", 5, false),
            ("Expires=Tue Nov 14 22:13:25 2023", 5, false),
            ("Expires=22:13:25 november,2023 14", 5, false),
            ("Expires=soon", 1000, true), ("Expires=Tue, 32 Nov 1999 00:00:00", 1000, true),
            ("Expires=Tue, 14 Nov 1600 00:00:00", 1000, true), ("Expires=1:2 1 jan 99", 1000, true),
        ]
    )
    func ends(_ attributes: String, _ seconds: Int, _ isKept: Bool) throws {
        let jar = try jar(["a=1; " + attributes], from: "http://h/", then: .seconds(seconds))
        #expect(try (jar.field(for: TargetURI("http://h/")) != nil) == isKept)
    }

    @Test("One takes the place of another of its name, domain and path; longer paths come first")
    func order() throws {
        let jar = try jar(
            ["a=1", "b=2; Path=/x", "a=3; Path=/x", "c=4", "a=5", "c=; Max-Age=0", "d=e=f"],
            from: "http://h/"
        )
        #expect(try jar.field(for: TargetURI("http://h/x")) == "b=2; a=3; a=5; d=e=f")
        #expect(try jar.field(for: TargetURI("http://h/")) == "a=5; d=e=f")
        let beside = try jar.field(for: TargetURI("http://h/"), beside: "a=0;x=1; dd=2")
        #expect(beside == "x=1; dd=2; a=5; d=e=f")
        #expect(try jar.field(for: TargetURI("http://other/"), beside: "a=0") == "a=0")
    }

    @Test("A jar is bounded, whatever is put into it")
    func bounds() throws {
        let long = String(repeating: "x", count: 4096)
        let jar = try jar(["l=\(long)"] + (0..<1000).map { "a\($0)=1" }, from: "http://h/")
        let field = try #require(try jar.field(for: TargetURI("http://h/")))
        #expect(field.split(separator: ";").count == 50 && field.hasSuffix("a999=1"))
    }
}
