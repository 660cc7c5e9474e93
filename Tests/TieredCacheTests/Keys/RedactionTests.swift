import HTTPCaching
import Testing

@testable import TieredCache

@Suite("Redaction", .timeLimit(.minutes(10)))
struct RedactionTests {
    static let examples = [
        ("https://user:pass@example.com/a/b.mp4?sig=secret", "https://example.com/a/b.mp4?..."),
        ("http://example.com:8080/a?", "http://example.com:8080/a?..."),
        ("http://example.com/a%3Fb#c", "http://example.com/a%3Fb"),
    ]

    @Test(arguments: examples)
    func `URLs lose userinfo and query`(url: String, shown: String) throws {
        let target = try TargetURI(url)
        #expect(target.redacted == shown)
        #expect(CacheKey(target).redacted == shown)
    }

    @Test
    func `Other keys show their file name alone`() throws {
        let target = try TargetURI("https://example.com/a")
        let keys = [
            CacheKey(explicit: "secret"),
            CacheKey(explicit: "http://secret/", method: "POST"),
            CacheKey(target, partition: "secret"),
        ]
        for key in keys { #expect(key.redacted == "key \(key.fileName)") }
    }

    @Test
    func `An event's description shows no query`() throws {
        let key = CacheKey(try TargetURI("https://example.com/a?secret"))
        let event = MediaCache.Event(key: key, .missed(.absent))
        #expect(event.description == "https://example.com/a?...: missed(absent)")
        #expect(MediaCache.Event(key: nil, .removed).description == "removed")
    }
}
