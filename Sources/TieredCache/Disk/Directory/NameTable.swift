/// Finds the number of a name: an open-addressing table of numbers, the names being in the slots.
///
/// 5 to 11 bytes per entry. Digests are spread evenly, but an attacker can choose among many keys:
/// the hash is seeded, so that no choice of keys crowds one place.
struct NameTable {
    private static let none: Int32 = -1
    /// Was taken; a search goes on behind it.
    private static let gone: Int32 = -2

    private var places: [Int32] = []
    private var used = 0
    private let seed: UInt64

    private(set) var count = 0

    /// - Parameter seed: of the hash.
    init(seed: UInt64 = .random(in: .min ... .max)) {
        // Odd, so that multiplying by it loses no bit of the digest.
        self.seed = seed | 1
    }

    /// The number of a name.
    func number(of name: EntryName, in slots: SlotSlab) -> Int32? {
        place(of: name, in: slots).map { places[$0] }
    }

    @inline(__always)
    private func place(of name: EntryName, in slots: SlotSlab) -> Int? {
        guard !places.isEmpty else { return nil }
        var place = home(of: name)
        while places[place] != Self.none {
            let number = places[place]
            if number >= 0, slots[number].name == name { return place }
            place = next(place)
        }
        return nil
    }

    /// Enters a number whose name is not in the table.
    mutating func insert(_ number: Int32, in slots: SlotSlab) {
        // Three quarters: linear probing takes long runs above that. What is gone counts as taken.
        if (used + 1) * 4 > places.count * 3 { rebuild(slots) }
        var place = home(of: slots[number].name)
        while places[place] >= 0 {
            place = next(place)
        }
        if places[place] == Self.none { used += 1 }
        places[place] = number
        count += 1
    }

    /// Makes room for so many names.
    mutating func reserve(_ count: Int, in slots: SlotSlab) {
        if count * 4 > places.count * 3 { rebuild(slots, for: count) }
    }

    /// Takes a name out.
    ///
    /// - Returns: its number.
    mutating func remove(_ name: EntryName, in slots: SlotSlab) -> Int32? {
        guard let place = place(of: name, in: slots) else { return nil }
        defer { places[place] = Self.gone }
        count -= 1
        return places[place]
    }

    /// Every number, in no order.
    func visit(_ body: (Int32) -> Void) {
        for number in places where number >= 0 {
            body(number)
        }
    }

    /// Makes room, and drops what is gone: always so much that a quarter of the table is filled
    /// before the next time.
    private mutating func rebuild(_ slots: SlotSlab, for wanted: Int = 0) {
        let old = places
        var size = 64
        while count * 2 >= size || wanted * 4 > size * 3 { size *= 2 }
        places = [Int32](repeating: Self.none, count: size)
        used = count
        for number in old where number >= 0 {
            var place = home(of: slots[number].name)
            while places[place] != Self.none {
                place = next(place)
            }
            places[place] = number
        }
    }

    @inline(__always)
    private func home(of name: EntryName) -> Int {
        // The constant is 2^64 divided by the golden ratio (Fibonacci hashing, Knuth 6.4).
        let mixed = (name.digest.low ^ seed) &* 0x9E37_79B9_7F4A_7C15 ^ name.digest.high &* seed
        return Int(truncatingIfNeeded: (mixed ^ mixed >> 32)) & (places.count - 1)
    }

    @inline(__always)
    private func next(_ place: Int) -> Int { (place + 1) & (places.count - 1) }
}
