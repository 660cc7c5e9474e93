import Testing
import TieredCache

@testable import TieredCacheProxy

@Suite(.timeLimit(.minutes(10)))
struct HitBookTests {
    private func page() throws -> HitBook.Page {
        HitBook.Page(RepeatedRequest(try CacheRequest("http://h.example/")))
    }

    @Test func whatIsAskedForAgainIsKept() throws {
        let book = HitBook(capacity: 4)
        let kept = try page()
        book.keep(kept, of: "kept")
        for number in 0..<100 {
            book.keep(try page(), of: "\(number)")
            #expect(book.page(of: "kept") === kept, "\(number)")
        }
        #expect(book.page(of: "0") == nil)
        #expect(book.page(of: "99") != nil)
    }

    @Test func itIsBounded() throws {
        let book = HitBook(capacity: 4)
        for number in 0..<100 { book.keep(try page(), of: "\(number)") }
        let count = (0..<100).count { book.page(of: "\($0)") != nil }
        #expect((4...8).contains(count))
    }
}
