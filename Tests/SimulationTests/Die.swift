import TieredCache

/// SplitMix64: the same numbers from the same seed, on every machine.
struct Die: RandomNumberGenerator, Sendable {
    private var state: UInt64

    init(seed: UInt64) {
        state = seed
    }

    mutating func next() -> UInt64 {
        state &+= 0x9E37_79B9_7F4A_7C15
        var mixed = (state ^ state >> 30) &* 0xBF58_476D_1CE4_E5B9
        mixed = (mixed ^ mixed >> 27) &* 0x94D0_49BB_1331_11EB
        return mixed ^ mixed >> 31
    }

    /// A number from 0 up to `count`, which is positive, itself not included.
    mutating func roll(_ count: Int) -> Int {
        Int(next() % UInt64(count))
    }

    /// True `times` times `of` so many.
    mutating func chance(_ times: Int, of count: Int) -> Bool {
        roll(count) < times
    }

    mutating func pick<Element>(_ elements: [Element]) -> Element {
        elements[roll(elements.count)]
    }

    /// A die of its own, so that rolling it more often changes nothing for others.
    mutating func split() -> Die { Die(seed: next()) }
}

/// A die that several parts of a simulation roll; their order is the run's own.
final class SharedDie: Sendable {
    private let die: Guarded<Die>

    init(_ die: Die) {
        self.die = Guarded(die)
    }

    func roll(_ count: Int) -> Int { die.withLock { $0.roll(count) } }
}
