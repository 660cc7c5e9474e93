import Synchronization

/// The entries in memory: those in use, as many open ones as the descriptor budget allows, and
/// dormant ones: their files are closed, their heads kept, so that a hit reads no record.
///
/// Holds the only reference that is not a lease: an entry without another reference is not in use.
/// A clock hand chooses the entry to close: to set a mark costs a hit less than to relink a list.
struct ResidentTable {
    /// An entry of the table.
    struct Found {
        var entry: DiskEntry
        /// Whether its files are closed.
        var isDormant: Bool
        fileprivate var number: Int
    }

    private struct Place {
        /// The bytes of memory of a dormant entry; 0 = its files are open.
        var dormantCost = 0
        /// Where an open entry stands in `open`.
        var position = 0
    }

    private var entries: [DiskEntry?] = []
    private var places: [Place] = []
    private var free: [Int] = []
    private var byKey: [CacheKey: Int] = [:]
    private var byName: [EntryName: Int] = [:]
    /// The numbers of the open entries.
    private var open: [Int] = []
    private var openHand = 0
    private var dormantHand = 0
    private(set) var dormantCost = 0

    var count: Int { byName.count }

    var openCount: Int { open.count }

    /// Every entry.
    var all: [DiskEntry] { entries.compactMap { $0 } }

    @inline(__always)
    func find(_ key: CacheKey) -> Found? {
        guard let number = byKey[key], let entry = entries[number] else { return nil }
        return Found(entry: entry, isDormant: places[number].dormantCost > 0, number: number)
    }

    subscript(name: EntryName) -> DiskEntry? {
        byName[name].flatMap { entries[$0] }
    }

    /// Adds an open entry; the caller has removed the entry that had its name.
    mutating func insert(_ entry: DiskEntry) {
        let number: Int
        if let reused = free.popLast() {
            number = reused
            entries[number] = entry
        } else {
            number = entries.count
            entries.append(entry)
            places.append(Place())
        }
        byKey[entry.key] = number
        byName[entry.name] = number
        beginOpen(number)
    }

    /// Removes an entry.
    ///
    /// Releasing the last reference closes files, which traps under the store's lock.
    mutating func remove(_ name: EntryName) -> DiskEntry? {
        guard let number = byName.removeValue(forKey: name), let entry = entries[number] else {
            return nil
        }
        byKey[entry.key] = nil
        entries[number] = nil
        if places[number].dormantCost > 0 {
            removeFromDormant(number)
        } else {
            endOpen(number)
        }
        free.append(number)
        return entry
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

    // MARK: Resting

    /// Counts an entry as open again, if it is still here and dormant.
    mutating func didReopen(_ found: Found) {
        guard isDormant(found) else { return }
        removeFromDormant(found.number)
        beginOpen(found.number)
    }

    /// Forgets a dormant entry whose file is not what it was.
    mutating func removeDormant(_ found: Found) -> DiskEntry? {
        isDormant(found) ? remove(found.entry.name) : nil
    }

    private func isDormant(_ found: Found) -> Bool {
        // The table of a store that was closed meanwhile is another one, and empty.
        entries.indices.contains(found.number) && entries[found.number] === found.entry
            && places[found.number].dormantCost > 0
    }

    /// Closes or removes unused entries until at most `maximum` are open and dormant ones cost at
    /// most `maximumDormantCost`.
    mutating func shrink(to maximum: Int, maximumDormantCost: Int) -> ReleasedEntries {
        var leaving = ReleasedEntries()
        var steps = 2 * open.count
        while open.count > maximum, steps > 0 {
            steps -= 1
            openHand = openHand + 1 < open.count ? openHand + 1 : 0
            let number = open[openHand]
            guard let entry = unused(number) else { continue }
            if maximumDormantCost > 0, let file = entry.becomeDormant() {
                endOpen(number)
                addDormant(number, cost: entry.headCost)
                leaving.append(file, of: entry.name)
            } else if let entry = remove(entry.name) {
                leaving.unused.append(entry)
            }
        }
        if dormantCost > maximumDormantCost { removeDormant(to: maximumDormantCost, &leaving) }
        return leaving
    }

    private mutating func removeDormant(to maximum: Int, _ leaving: inout ReleasedEntries) {
        var steps = 2 * entries.count
        while dormantCost > maximum, steps > 0 {
            steps -= 1
            dormantHand = dormantHand + 1 < entries.count ? dormantHand + 1 : 0
            guard places[dormantHand].dormantCost > 0, let entry = unused(dormantHand),
                let entry = remove(entry.name)
            else { continue }
            leaving.entries.append(entry)
        }
    }

    /// An entry without a lease that was not used since the hand passed it.
    private mutating func unused(_ number: Int) -> DiskEntry? {
        guard entries[number] != nil, isKnownUniquelyReferenced(&entries[number]),
            let entry = entries[number], !entry.clock.exchange(false, ordering: .relaxed)
        else { return nil }
        return entry
    }

    private mutating func beginOpen(_ number: Int) {
        places[number].position = open.count
        open.append(number)
    }

    private mutating func endOpen(_ number: Int) {
        let position = places[number].position
        let last = open.removeLast()
        guard last != number else { return }
        open[position] = last
        places[last].position = position
    }

    private mutating func addDormant(_ number: Int, cost: Int) {
        places[number].dormantCost = cost
        dormantCost += cost
    }

    private mutating func removeFromDormant(_ number: Int) {
        dormantCost -= places[number].dormantCost
        places[number].dormantCost = 0
    }
}

extension DiskEntry {
    /// Takes the file of an entry that only the table references, so that no reader uses it.
    ///
    /// - Returns: the file to close; `nil` for an entry that cannot be found again without its
    ///   record.
    fileprivate func becomeDormant() -> OpenFile? {
        state.withLock { state in
            guard state.canBecomeDormant, let file = state.body else { return nil }
            state.body = nil
            state.isBodyWritable = false
            if state.dormantPath.isEmpty {
                state.dormantPath = state.isInline ? name.record : name.body(generation)
            }
            refreshHotBody(&state)
            return file
        }
    }
}

/// The entries removed from the table, for ``DiskStore/retire(_:blocking:)``, which closes the
/// files.
struct ReleasedEntries {
    /// Entries without a file, or in use.
    var entries: [DiskEntry] = []
    /// Unused entries: their files can be closed.
    var unused: [DiskEntry] = []
    /// Mostly one: its room costs a hit no allocation.
    private var first: (file: OpenFile, name: EntryName)?
    private var others: [(file: OpenFile, name: EntryName)] = []

    mutating func append(_ file: OpenFile, of name: EntryName) {
        guard first != nil else {
            first = (file, name)
            return
        }
        others.append((file, name))
    }

    mutating func append(_ leaving: ReleasedEntries) {
        entries.append(contentsOf: leaving.entries)
        unused.append(contentsOf: leaving.unused)
        leaving.forEachFile { append($0, of: $1) }
    }

    func forEachFile(_ body: (OpenFile, EntryName) -> Void) {
        if let first { body(first.file, first.name) }
        for (file, name) in others {
            body(file, name)
        }
    }
}
