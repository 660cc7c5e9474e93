/// Open addressing from hashes to entry numbers: one array of slots, linear probing, no tombstones.
///
/// A slot's word holds 32 bits of the hash above the entry's number plus one; zero is a free slot.
/// The bits of the hash tell the home of a word without looking at its entry, so that removal can
/// close the gap behind it and no word is ever further from home than the load makes necessary.
///
/// The profile of a hit among 10,000 entries is waiting for memory: for the slot, then for the
/// entry, then for the object that is its value. Beside its word a slot therefore has the address
/// of that object, so that the last two are loaded at the same time. Slots of 16 bytes never
/// straddle two cache lines.
@usableFromInline
struct MemoryIndex {
    @usableFromInline
    struct Slot {
        @usableFromInline var word: UInt64
        /// See ``MemoryEntries/hint(of:)``; never followed.
        @usableFromInline var hint: UInt

        @inlinable
        init(word: UInt64, hint: UInt) {
            self.word = word
            self.hint = hint
        }
    }

    @usableFromInline var slots: UnsafeMutablePointer<Slot>
    @usableFromInline var mask: Int
    @usableFromInline var count = 0

    @usableFromInline
    init(capacity: Int = 16) {
        let bytes = capacity * MemoryLayout<Slot>.stride
        slots = UnsafeMutableRawPointer.allocate(byteCount: bytes, alignment: 64)
            .bindMemory(to: Slot.self, capacity: capacity)
        slots.initialize(repeating: Slot(word: 0, hint: 0), count: capacity)
        mask = capacity - 1
    }

    /// Gives the memory back.
    ///
    /// Explicit, because the optimiser (6.3.1) crashes on a property whose
    /// type has a `deinit` that other modules may inline.
    func deallocate() {
        slots.deallocate()
    }

    /// Address and size in one word, so that one atomic load tells both to ``prefetch(_:in:)``: the
    /// memory is aligned to 64 bytes, and the free bits hold the logarithm of the capacity.
    @inlinable
    @inline(__always)
    var hint: UInt { UInt(bitPattern: slots) | UInt(truncatingIfNeeded: mask.nonzeroBitCount) }

    /// Starts loading the home of a tag.
    @inlinable
    @inline(__always)
    static func prefetch(_ tag: UInt32, in hint: UInt) {
        let place = UInt(tag) & ((1 &<< (hint & 63)) &- 1)
        CacheLine.prefetch((hint & ~63) &+ place &* UInt(MemoryLayout<Slot>.stride))
    }

    /// The number of the entry under `tag` that `matches`, or -1.
    @inlinable
    @inline(__always)
    func find(tag: UInt32, where matches: (Int) -> Bool) -> Int {
        var place = Int(tag) & mask
        while true {
            let word = slots[place].word
            if UInt32(truncatingIfNeeded: word >> 32) == tag, word != 0 {
                CacheLine.prefetchForWriting(slots[place].hint)
                let entry = Int(word & 0xffff_ffff) &- 1
                if matches(entry) { return entry }
            } else if word == 0 {
                return -1
            }
            place = (place &+ 1) & mask
        }
    }

    /// Adds an entry, which must not be there yet.
    @inlinable
    mutating func insert(tag: UInt32, entry: Int, hint: UInt) {
        // At most half full: a search that does not end at the first slot is a branch mispredicted.
        if (count &+ 1) &* 2 > mask { grow() }
        place(Slot(word: Self.word(tag: tag, entry: entry), hint: hint))
        count &+= 1
    }

    /// Replaces the hint of an entry, which must be there: any address is safe.
    @inlinable
    func setHint(_ hint: UInt, tag: UInt32, entry: Int) {
        slots[placeOf(tag: tag, entry: entry)].hint = hint
    }

    /// Removes an entry, which must be there, and moves back what was pushed aside by it.
    @inlinable
    mutating func remove(tag: UInt32, entry: Int) {
        var gap = placeOf(tag: tag, entry: entry)
        var place = gap
        while true {
            place = (place &+ 1) & mask
            let slot = slots[place]
            guard slot.word != 0 else { break }
            let home = Int(truncatingIfNeeded: slot.word >> 32) & mask
            // Movable unless its home lies in the cyclic range (gap, place].
            guard (place &- home) & mask >= (place &- gap) & mask else { continue }
            slots[gap] = slot
            gap = place
        }
        slots[gap].word = 0
        count &-= 1
    }

    @inlinable
    static func word(tag: UInt32, entry: Int) -> UInt64 {
        UInt64(tag) << 32 | UInt64(truncatingIfNeeded: entry &+ 1)
    }

    @inlinable
    func placeOf(tag: UInt32, entry: Int) -> Int {
        let wanted = Self.word(tag: tag, entry: entry)
        var place = Int(tag) & mask
        while slots[place].word != wanted { place = (place &+ 1) & mask }
        return place
    }

    @inlinable
    mutating func place(_ slot: Slot) {
        var place = Int(truncatingIfNeeded: slot.word >> 32) & mask
        while slots[place].word != 0 { place = (place &+ 1) & mask }
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
