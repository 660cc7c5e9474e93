public import CLinuxCalls

/// Open addressing from hashes to entry numbers: one array of slots, linear probing, no tombstones.
///
/// A slot's word holds 32 bits of the hash above the entry's number plus one; zero is a free slot.
/// The bits of the hash tell the home of a word without looking at its entry, so that removal can
/// close the gap behind it and no word is ever further from home than the load makes necessary.
///
/// The profile of a hit among 10,000 entries is two waits for memory, for the entry and then for
/// the bytes of the key that the entry points to. Beside its word a slot therefore has the address
/// of those bytes, never followed, only passed to the processor as a hint: both loads then run at
/// the same time.
@usableFromInline
struct MemoryIndex {
    @usableFromInline
    struct Slot {
        @usableFromInline var word: UInt64
        @usableFromInline var keyAddress: UInt

        @inlinable
        init(word: UInt64, keyAddress: UInt) {
            self.word = word
            self.keyAddress = keyAddress
        }
    }

    @usableFromInline var slots: UnsafeMutablePointer<Slot>
    @usableFromInline var mask: Int
    @usableFromInline var count = 0

    @usableFromInline
    init(capacity: Int = 16) {
        slots = .allocate(capacity: capacity)
        slots.initialize(repeating: Slot(word: 0, keyAddress: 0), count: capacity)
        mask = capacity - 1
    }

    /// Gives the memory back.
    ///
    /// Explicit, because the optimiser (6.3.1) crashes on a property whose
    /// type has a `deinit` that other modules may inline.
    func deallocate() {
        slots.deallocate()
    }

    /// The number of the entry under `tag` that `matches`, or -1.
    @inlinable
    @inline(__always)
    func find(tag: UInt32, where matches: (Int) -> Bool) -> Int {
        var place = Int(tag) & mask
        while true {
            let word = slots[place].word
            if UInt32(truncatingIfNeeded: word >> 32) == tag, word != 0 {
                tc_prefetch(slots[place].keyAddress)
                tc_prefetch(slots[place].keyAddress &+ 64)
                let entry = Int(word & 0xffff_ffff) &- 1
                if matches(entry) { return entry }
            } else if word == 0 {
                return -1
            }
            place = (place &+ 1) & mask
        }
    }

    /// Adds an entry, which must not be there yet.
    ///
    /// - Parameters:
    ///   - tag: the part of the hash that the slot holds.
    ///   - entry: the entry's number.
    ///   - keyAddress: where the key's bytes are; any number is safe.
    @inlinable
    mutating func insert(tag: UInt32, entry: Int, keyAddress: UInt) {
        if (count + 1) * 4 > (mask + 1) * 3 { grow() }
        place(Slot(word: UInt64(tag) << 32 | UInt64(entry + 1), keyAddress: keyAddress))
        count += 1
    }

    /// Removes an entry, which must be there, and moves back what was pushed aside by it.
    @inlinable
    mutating func remove(tag: UInt32, entry: Int) {
        let wanted = UInt64(tag) << 32 | UInt64(entry + 1)
        var gap = Int(tag) & mask
        while slots[gap].word != wanted { gap = (gap + 1) & mask }
        var place = gap
        while true {
            place = (place + 1) & mask
            let slot = slots[place]
            guard slot.word != 0 else { break }
            let home = Int(slot.word >> 32) & mask
            // Movable unless its home lies in the cyclic range (gap, place].
            guard (place &- home) & mask >= (place &- gap) & mask else { continue }
            slots[gap] = slot
            gap = place
        }
        slots[gap].word = 0
        count -= 1
    }

    @inlinable
    mutating func place(_ slot: Slot) {
        var place = Int(slot.word >> 32) & mask
        while slots[place].word != 0 { place = (place + 1) & mask }
        slots[place] = slot
    }

    @usableFromInline
    @inline(never)
    mutating func grow() {
        let old = slots
        let oldCapacity = mask + 1
        self = MemoryIndex(capacity: oldCapacity * 2)
        for index in 0..<oldCapacity where old[index].word != 0 {
            place(old[index])
            count += 1
        }
        old.deallocate()
    }
}
