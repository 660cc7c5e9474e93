import HTTPCaching
import Testing

@Suite("CacheStatus", .timeLimit(.minutes(10)))
struct CacheStatusTests {
    @Test("Values as RFC 9211 writes them")
    func values() {
        let hit = CacheStatus.hit(timeToLive: .seconds(376), detail: "memory")
        #expect(hit.fieldValue == "TieredCache; hit; ttl=376; detail=memory")
        #expect(hit.isHit)
        #expect(CacheStatus.hit().fieldValue == "TieredCache; hit")
        let stale = CacheStatus.hit(timeToLive: .milliseconds(-1500))
        #expect(stale.fieldValue == "TieredCache; hit; ttl=-2")
        let revalidated = CacheStatus.forwarded(
            .stale,
            status: 304,
            isStored: true,
            isCollapsed: true,
            timeToLive: .seconds(60)
        )
        #expect(
            revalidated.fieldValue
                == "TieredCache; fwd=stale; fwd-status=304; ttl=60; stored; collapsed"
        )
        #expect(!revalidated.isHit)
        #expect(CacheStatus.forwarded(.uriMiss).description == "TieredCache; fwd=uri-miss")
    }

    @Test(
        "A detail is a token or a string, whatever it holds",
        arguments: [
            ("memory", "memory"), ("disk:warm", "disk:warm"), ("not stored", "\"not stored\""),
            ("", "\"\""), ("9x", "\"9x\""), ("a\"b\\c", "\"a\\\"b\\\\c\""),
            ("é\r\nX: y", "\"???X: y\""),
        ]
    )
    func detail(text: String, expected: String) {
        #expect(CacheStatus.hit(detail: text).fieldValue == "TieredCache; hit; detail=\(expected)")
    }
}
