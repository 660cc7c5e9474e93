import Testing

@_spi(Benchmarks) @testable import TieredCache

/// Keys of every length and kind, values of every layout: entries keep both in raw memory.
@Suite("Memory entries", .timeLimit(.minutes(10)))
struct MemoryEntriesTests {
    /// Lengths around all that is special: none, a small string, the entry's room, a line.
    private static let lengths = Array(0...200) + [1000, 70_000]

    private static func text(_ length: Int, _ last: Character = "z") -> String {
        length == 0
            ? ""
            : String(repeating: "ü", count: (length - 1) / 2)
                + String(repeating: "a", count: (length - 1) % 2) + String(last)
    }

    private func limits() throws -> MemoryLimits {
        try MemoryLimits(maximumCost: 100_000, maximumEntryFraction: 1)
    }

    /// Inserts a key of each length, finds each and none of its neighbours, and gets each back.
    private func check<Key: Hashable & Sendable>(_ make: (String) -> Key) throws {
        let left = Guarded<[Key: Int]>([:])
        let cache = MemoryCache<Key, Int>(limits: try limits()) { key, value, _ in
            left.withLock { $0[key] = value }
        }
        for length in Self.lengths {
            cache.insert(length, forKey: make(Self.text(length)), cost: 1)
        }
        #expect(cache.brokenInvariant() == nil)
        for length in Self.lengths {
            #expect(cache.value(forKey: make(Self.text(length))) == length)
            guard length > 0 else { continue }
            #expect(cache.value(forKey: make(Self.text(length, "y"))) == nil)
        }
        let odd = { (key: Key) in
            Self.lengths.contains { $0 % 2 == 1 && make(Self.text($0)) == key }
        }
        cache.removeAll(where: odd)
        #expect(cache.entryCount == Self.lengths.count { $0 % 2 == 0 })
        #expect(cache.remove(make(Self.text(70_000))) == 70_000)
        cache.removeAll()
        #expect(cache.brokenInvariant() == nil)
        let expected = Self.lengths.map { (make(Self.text($0)), $0) }
        #expect(left.withLock { $0 } == Dictionary(uniqueKeysWithValues: expected))
    }

    @Test
    func `Strings of any length`() throws {
        try check { $0 }
    }

    @Test
    func `Cache keys of any length`() throws {
        try check { CacheKey(stored: $0) }
    }

    @Test
    func `Tier keys of any length, and the view tells them apart`() throws {
        try check { MemoryTierKey(CacheKey(stored: $0), view: 7) }
        let cache = MemoryCache<MemoryTierKey, Int>(limits: try limits())
        for length in Self.lengths {
            let key = CacheKey(stored: Self.text(length))
            cache.insert(1, forKey: MemoryTierKey(key, view: 1), cost: 1)
            cache.insert(2, forKey: MemoryTierKey(key, view: 2), cost: 1)
            #expect(cache.value(forKey: MemoryTierKey(key, view: 1)) == 1)
            #expect(cache.value(forKey: MemoryTierKey(key, view: 2)) == 2)
            #expect(cache.value(forKey: MemoryTierKey(key, view: 3)) == nil)
        }
    }

    @Test
    func `Keys that are no text`() throws {
        struct Wide: Hashable { let parts: [String], number: SIMD4<Int64> }
        try check { [$0, "and more"] }
        try check { Wide(parts: [$0], number: SIMD4(1, 2, 3, 4)) }
    }

    @Test
    func `A key that is replaced keeps its entry`() throws {
        let left = Guarded<[String]>([])
        let cache = MemoryCache<String, Int>(limits: try limits()) { key, _, cause in
            left.withLock { $0.append("\(key) \(cause)") }
        }
        for length in [3, 50, 300] {
            for value in 1...3 { cache.insert(value, forKey: Self.text(length), cost: value) }
            #expect(cache.value(forKey: Self.text(length)) == 3)
        }
        #expect(cache.totalCost == 9)
        #expect(cache.brokenInvariant() == nil)
        let expected = [3, 50, 300].flatMap {
            Array(repeating: Self.text($0) + " replaced", count: 2)
        }
        #expect(left.withLock { $0 } == expected)
    }

    private func checkValues<Value: Equatable & Sendable>(_ values: [Value]) throws {
        let cache = MemoryCache<String, Value>(limits: try limits())
        for (number, value) in values.enumerated() {
            cache.insert(value, forKey: Self.text(number), cost: 1)
        }
        for (number, value) in values.enumerated() {
            #expect(cache.value(forKey: Self.text(number)) == value)
        }
        #expect(cache.brokenInvariant() == nil)
    }

    @Test
    func `Values of any layout`() throws {
        struct None: Equatable {}
        struct Large: Equatable { var name: String, lanes: SIMD8<Double>, tail: [Int] }
        try checkValues((0..<200).map { $0 % 2 == 0 })
        try checkValues((0..<200).map { UInt8($0) })
        try checkValues(Array(repeating: None(), count: 200))
        try checkValues((0..<200).map { String(repeating: "v", count: $0) })
        try checkValues(
            (0..<200).map { Large(name: "\($0)", lanes: SIMD8(repeating: Double($0)), tail: [$0]) }
        )
    }
}
