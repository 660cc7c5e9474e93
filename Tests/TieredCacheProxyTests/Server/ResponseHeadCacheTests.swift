import Testing
import TieredCache

@testable import TieredCacheProxy

@Suite(.timeLimit(.minutes(10)))
struct ResponseHeadCacheTests {
    private func page() throws -> ResponseHeadCache.Page {
        ResponseHeadCache.Page(RepeatedRequest(try CacheRequest("http://h.example/")))
    }

    @Test func whatIsAskedForAgainIsKept() throws {
        let charge = ResponseHeadCache(capacity: 4)
        let kept = try page()
        charge.keep(kept, of: "kept")
        for number in 0..<100 {
            charge.keep(try page(), of: "\(number)")
            #expect(charge.page(of: "kept") === kept, "\(number)")
        }
        #expect(charge.page(of: "0") == nil)
        #expect(charge.page(of: "99") != nil)
    }

    @Test func itIsBounded() throws {
        let charge = ResponseHeadCache(capacity: 4)
        for number in 0..<100 { charge.keep(try page(), of: "\(number)") }
        let count = (0..<100).count { charge.page(of: "\($0)") != nil }
        #expect((4...8).contains(count))
    }
}
