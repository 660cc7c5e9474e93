import Testing
import TieredCacheTesting

@_spi(Benchmarks) @testable import TieredCache

@Suite("TypedMemoryView", .timeLimit(.minutes(10)))
struct TypedMemoryViewTests {
    struct Image: Hashable, Sendable {
        let width: Int
        let height: Int
    }

    struct NotDecodable: Error {}

    let key = CacheKey(explicit: "poster")

    @Test
    func `Views keep types and names apart under one key`() throws {
        let tier = try Self.tier()
        let images = tier.view(of: Image.self, named: "image") { $0.width * $0.height }
        let thumbnails = tier.view(of: Image.self, named: "thumbnail") { _ in 1 }
        let texts = tier.view(of: String.self, named: "image") { $0.utf8.count }
        images.insert(Image(width: 5, height: 5), forKey: key)
        #expect(thumbnails.value(forKey: key) == nil)
        #expect(texts.value(forKey: key) == nil)
        thumbnails.insert(Image(width: 1, height: 1), forKey: key)
        texts.insert("text", forKey: key)
        #expect(images.value(forKey: key) == Image(width: 5, height: 5))
        #expect(thumbnails.value(forKey: key) == Image(width: 1, height: 1))
        #expect(texts.value(forKey: key) == "text")
        #expect(tier.cache.totalCost == 25 + 1 + 4)
        #expect(texts.remove(key) == "text")
        #expect(images.contains(key))
        tier.removeAll(forKey: key)
        #expect(tier.cache.entryCount == 0)
        #expect(tier.cache.brokenInvariant() == nil)
    }

    @Test
    func `A view made again sees the same values`() throws {
        let tier = try Self.tier()
        tier.view(of: String.self, named: "text") { _ in 1 }.insert("a", forKey: key)
        #expect(tier.view(of: String.self, named: "text") { _ in 1 }.value(forKey: key) == "a")
    }

    @Test
    func `All views share the limit and the order`() throws {
        let tier = try Self.tier(cost: 100)
        let texts = tier.view(of: String.self, named: "text") { $0.utf8.count }
        let numbers = tier.view(of: Int.self, named: "number") { $0 }
        texts.insert("0123456789", forKey: key)
        for number in 0..<9 { numbers.insert(10, forKey: CacheKey(explicit: "\(number)")) }
        #expect(texts.value(forKey: key) != nil)
        numbers.insert(10, forKey: CacheKey(explicit: "more"))
        #expect(!numbers.contains(CacheKey(explicit: "0")))
        #expect(texts.contains(key))
        #expect(!numbers.insert(11, forKey: key))
        #expect(tier.cache.totalCost == 100)
    }

    @Test
    func `What is missing is made once and kept`() throws {
        let tier = try Self.tier()
        let texts = tier.view(of: String.self, named: "text") { $0.utf8.count }
        #expect(throws: NotDecodable.self) {
            try texts.value(forKey: key) { () throws(NotDecodable) in throw NotDecodable() }
        }
        #expect(texts.value(forKey: key) { "made" } == "made")
        #expect(texts.value(forKey: key) { "made again" } == "made")
    }

    @Test
    func `The observer is told of the entry's key`() throws {
        let causes = Guarded<[RemovalCause]>([])
        let key = key
        let limits = try MemoryLimits(maximumCost: 100)
        let tier = MemoryTier(limits: limits) { removed, cause in
            #expect(removed == key)
            causes.withLock { $0.append(cause) }
        }
        let texts = tier.view(of: String.self, named: "text") { $0.utf8.count }
        texts.insert("a", forKey: key)
        texts.insert("b", forKey: key)
        texts.remove(key)
        #expect(causes.withLock { $0 } == [.replaced, .explicit])
    }

    static func tier(cost: Int = 1000) throws -> MemoryTier {
        MemoryTier(limits: try MemoryLimits(maximumCost: cost), time: ManualTimeSource())
    }
}
