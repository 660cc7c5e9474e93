/// The index of the directory's entries, and how much of it is loaded: hints (invariant 6).
///
/// A part of ``DiskStore/State``; the files are read and written elsewhere.
struct EntryIndex: Sendable {
    var index = DiskIndex()
    /// The victims of an eviction, out of the index, until their files are removed.
    private var victims: [EntryName: DiskIndex.Slot] = [:]
    /// The snapshot of the last owner.
    var snapshot = IndexSnapshot.State()
    /// Counts, per directory, the changes that make a file of a lookup an old one.
    private(set) var changes = [UInt32](repeating: 0, count: 256)
    /// Which directories are there, as far as this store has seen.
    var hasShard = [Bool](repeating: false, count: 256)
    /// Entries with damaged records; they are removed, whatever replaces them.
    private var damaged: Set<EntryName> = []
    /// Which of the 256 directories are in the index.
    private var loaded = [Bool](repeating: false, count: 256)
    /// Whether all are in the index, in the order of their use.
    private(set) var isLoaded = false
    /// The last uses of entries of directories that are not in the index yet; bounded in number.
    private var earlyUses: [EntryName: UInt64] = [:]
    private var lastFold: Int64 = 0

    /// Whether the directory is in the index.
    func hasLoaded(_ shard: Int) -> Bool { loaded[shard] }

    /// Whether a lookup of the owner finds nothing under the name; true of a victim.
    func isKnownAbsent(_ name: EntryName) -> Bool {
        loaded[name.shardNumber] && index[name] == nil && !damaged.contains(name)
    }

    /// Whether there may be files of the name: those of an entry, of a victim, or damaged ones.
    func mayHaveFiles(_ name: EntryName) -> Bool {
        victims[name] != nil || !isKnownAbsent(name)
    }

    /// Whether the record on disk is of this generation: a directory that is not in the index yet
    /// was not written to.
    func isCurrent(_ name: EntryName, generation: UInt64) -> Bool {
        guard loaded[name.shardNumber] else { return true }
        return index[name]?.generation == generation
    }

    // MARK: Leaving

    // What an eviction has chosen has its name and its files until its turn comes: it is not among
    // the oldest any more, and lookups do not find it. One name is never in the index and a victim
    // as well.

    /// Takes an entry out of the index, as one that is to leave.
    mutating func takeVictim(_ slot: DiskIndex.Slot) {
        index.remove(slot.name)
        victims[slot.name] = slot
    }

    /// The present slot of a victim; nil once another call has removed or replaced the entry.
    ///
    /// A lookup may have opened it, and a writer may have written to it since.
    func victim(_ name: EntryName) -> DiskIndex.Slot? { victims[name] }

    /// All victims.
    var leaving: some Collection<DiskIndex.Slot> { victims.values }

    /// A victim's files are gone.
    mutating func forgetVictim(_ name: EntryName) { victims[name] = nil }

    /// A victim stays, as `slot`.
    mutating func spareVictim(_ slot: DiskIndex.Slot) {
        victims[slot.name] = nil
        index.insert(slot)
    }

    // MARK: What has a name

    /// The slot of the name, victims included.
    func known(_ lock: borrowing NameLock) -> DiskIndex.Slot? { slot(of: lock.name) }

    private func slot(of name: EntryName) -> DiskIndex.Slot? { index[name] ?? victims[name] }

    /// Forgets the slot of a name.
    mutating func remove(_ name: EntryName) -> DiskIndex.Slot? {
        index.remove(name) ?? victims.removeValue(forKey: name)
    }

    /// Moves the slot of a name to the queue of pinned entries, or out of it.
    mutating func setPinned(_ isPinned: Bool, of name: EntryName) {
        guard let slot = slot(of: name), isPinned != (slot.queue == .pinned) else { return }
        let queue: DiskIndex.Queue = isPinned ? .pinned : .used
        index.move(name, to: queue)
        victims[name]?.queue = queue
    }

    /// The bytes charged for the files of a generation; nil if they have no name any more.
    func charged(_ name: EntryName, generation: UInt64) -> DiskIndex.Slot? {
        slot(of: name).flatMap { $0.generation == generation ? $0 : nil }
    }

    /// Changes the bytes charged for the files of a generation.
    ///
    /// - Returns: by how many bytes they grew; nil if they have no name any more.
    @discardableResult
    mutating func update(
        _ name: EntryName,
        generation: UInt64,
        change: (inout DiskIndex.Slot) -> Void
    ) -> Int64? {
        if let growth = index.update(name, generation: generation, change: change) { return growth }
        guard var victim = victims[name], victim.generation == generation else { return nil }
        let before = victim.bytes
        change(&victim)
        victims[name] = victim
        return victim.bytes - before
    }

    // MARK: Changes

    /// Files of the name are not what a lookup may have opened.
    mutating func didChange(_ name: EntryName) {
        // Wraps after 2^32 changes; a lookup lasts for a few of them.
        changes[name.shardNumber] &+= 1
    }

    /// Notes a damaged record; a few are enough, for the statistics.
    mutating func didMeetDamaged(_ name: EntryName) {
        if damaged.count < 1024 { damaged.insert(name) }
    }

    /// - Returns: whether the name was noted as damaged.
    mutating func forgetDamaged(_ name: EntryName) -> Bool {
        damaged.remove(name) != nil
    }

    // MARK: Loading

    /// Enters the slots of a directory.
    ///
    /// - Parameters:
    ///   - slots: the slots from its records, or from its files where a record cannot be read.
    ///   - shard: its number.
    mutating func add(_ slots: [DiskIndex.Slot], of shard: Int) {
        for slot in slots {
            index.append(used(slot))
        }
        loaded[shard] = true
    }

    /// Marks the index as complete.
    ///
    /// - Returns: the file of the snapshot, which is needed no longer.
    mutating func didLoadAll() -> OpenFile? {
        isLoaded = true
        earlyUses = [:]
        return snapshot.close()
    }

    // MARK: Use

    /// Notes that an entry was used.
    mutating func touch(_ name: EntryName, at time: UInt64) {
        if loaded[name.shardNumber] {
            index.touch(name, at: time)
            // Some MiB at most; a use that is not noted makes the order of eviction worse, no more.
        } else if earlyUses.count < 1 << 16 {
            earlyUses[name] = time
        }
    }

    /// An entry that is not in the index yet, with what was noted of its use.
    func used(_ slot: DiskIndex.Slot) -> DiskIndex.Slot {
        guard let use = earlyUses[slot.name], use > slot.lastUse else { return slot }
        var slot = slot
        slot.use(at: use)
        return slot
    }

    /// Whether a minute has passed since uses were last written down; counts as doing it.
    mutating func beginFold(at now: Int64) -> Bool {
        // Eviction can do with an order of use that is a minute old.
        guard now - lastFold >= 60_000_000_000 else { return false }
        lastFold = now
        return true
    }
}
