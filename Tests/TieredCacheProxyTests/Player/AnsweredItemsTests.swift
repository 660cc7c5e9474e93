import HTTPCaching
import Testing
import TieredCache

@testable import TieredCacheProxy

@Suite("What players have been given bytes of", .timeLimit(.minutes(10)))
struct AnsweredItemsTests {
    private func item(_ number: Int) throws -> PlayingSessions.Item {
        PlayingSessions.Item(try CacheRequest("http://a.example/\(number)"))
    }

    @Test("The newest are known, however many there were; those that are noted again are new")
    func newest() throws {
        let items = AnsweredItems()
        let film = try item(-1)
        items.insert(film)
        for number in 0..<3 * AnsweredItems.capacity {
            items.insert(try item(number))
            if number % 1000 == 0 { items.insert(film) }
            #expect(items.contains(film), "\(number)")
        }
        let last = 3 * AnsweredItems.capacity
        for number in last - AnsweredItems.capacity..<last {
            let isKnown = items.contains(try item(number))
            #expect(isKnown, "\(number)")
        }
        let first = items.contains(try item(0))
        #expect(!first)
    }
}
