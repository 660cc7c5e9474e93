import Synchronization

/// The entries that are open: those in use, and as many others as the descriptor budget allows.
///
/// Holds the only reference that is not a lease: an entry whose reference here is the last one is in
/// nobody's use. Who leaves is found by a clock hand: a used mark costs a hit less than list surgery.
struct ResidentTable {
    private var entries: [DiskEntry?] = []
    private var free: [Int] = []
    private var byKey: [CacheKey: Int] = [:]
    private var byName: [EntryName: Int] = [:]
    private var hand = 0

    var count: Int { byKey.count }

    /// Every open entry.
    var all: [DiskEntry] { entries.compactMap { $0 } }

    @inline(__always)
    subscript(key: CacheKey) -> DiskEntry? {
        byKey[key].flatMap { entries[$0] }
    }

    subscript(name: EntryName) -> DiskEntry? {
        byName[name].flatMap { entries[$0] }
    }

    /// Adds an entry; the caller has removed what had its name.
    mutating func insert(_ entry: DiskEntry) {
        let number: Int
        if let reused = free.popLast() {
            number = reused
            entries[number] = entry
        } else {
            number = entries.count
            entries.append(entry)
        }
        byKey[entry.key] = number
        byName[entry.name] = number
    }

    /// Removes an entry; the caller lets go of it outside the lock, since that closes files.
    mutating func remove(_ name: EntryName) -> DiskEntry? {
        guard let number = byName.removeValue(forKey: name), let entry = entries[number] else {
            return nil
        }
        byKey[entry.key] = nil
        entries[number] = nil
        free.append(number)
        return entry
    }

    /// Whether somebody besides this table holds the entry.
    mutating func isLeased(_ name: EntryName) -> Bool {
        guard let number = byName[name] else { return false }
        return !isKnownUniquelyReferenced(&entries[number])
    }

    /// The names that are in use.
    mutating func leasedNames() -> [EntryName] {
        var result: [EntryName] = []
        for number in entries.indices where entries[number] != nil {
            if isKnownUniquelyReferenced(&entries[number]) { continue }
            result.append(contentsOf: entries[number].map { [$0.name] } ?? [])
        }
        return result
    }

    /// Removes entries that nobody uses until at most `maximum` are left.
    mutating func shrink(to maximum: Int) -> [DiskEntry] {
        var removed: [DiskEntry] = []
        var steps = 2 * entries.count
        while count > maximum, steps > 0 {
            steps -= 1
            hand = hand + 1 < entries.count ? hand + 1 : 0
            guard entries[hand] != nil, isKnownUniquelyReferenced(&entries[hand]),
                let entry = entries[hand]
            else { continue }
            if entry.clock.exchange(false, ordering: .relaxed) { continue }
            removed.append(contentsOf: [remove(entry.name)].compactMap { $0 })
        }
        return removed
    }
}
