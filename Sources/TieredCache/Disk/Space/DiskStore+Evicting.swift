import SystemPackage

// The order of eviction, each queue by last use: entries prefetched and never used; all others, of
// which huge ones lose their tail first and stay as a head; heads. Pinned and leased entries stay,
// except that a huge entry in use gives up cold blocks when nothing else is left.
extension DiskStore {
    /// The result of an eviction.
    struct Eviction {
        var freed: Int64 = 0
        /// How many entries are gone, or shorter.
        var count = 0
        /// Whether nothing more could be evicted.
        var isExhausted = false
        fileprivate var gone: [DiskRemoval] = []
    }

    /// How many entries are evicted at once, since hits wait for the lock under which they are chosen;
    /// and how many a write waits for.
    static let evictionBatch = 64

    /// Evicts until enough is free; pinned and leased entries stay.
    ///
    /// One thread at a time: others find what it freed instead of evicting as much again.
    ///
    /// - Parameters:
    ///   - reason: the reason to report; `nil` for room that a write needs.
    ///   - most: how many entries to evict at most; while it is more than a batch, no write waits.
    ///   - missing: gets the bytes freed so far, and returns how many more are needed.
    /// - Returns: the result.
    @discardableResult
    func evict(
        _ reason: DiskEvictionReason? = nil,
        atMost most: Int = .max,
        until missing: (_ freed: Int64) -> Int64
    ) -> Eviction {
        var result = Eviction()
        let isClearing = most > Self.evictionBatch && state.withLock { $0.space.beginClearing() }
        defer { if isClearing { state.withLock { $0.space.endClearing() } } }
        evictions.withLock {
            foldUses()
            if missing(0) > 0 { result.freed += emptyQuarantine() }
            // Each entry is tried once: those that cannot be removed must not keep us here.
            var failed: Set<EntryName> = []
            while !result.isExhausted, result.count < most {
                let count = missing(result.freed)
                guard count > 0 else { return }
                let victims = takeVictims(count, atMost: most - result.count, except: failed)
                for victim in victims {
                    if !evict(victim, because: reason, result: &result) {
                        failed.insert(victim.name)
                    }
                }
                guard victims.isEmpty else { continue }
                let cold = reason == .trimmed ? 0 : giveUpColdBlocks(count)
                result.freed += cold
                result.isExhausted = cold <= 0
            }
        }
        // Behind the lock: the history takes locks of its own.
        for gone in result.gone { didLose(gone) }
        return result
    }

    /// The bytes that eviction could free: entries neither pinned nor leased.
    func evictableBytes() -> Int64 {
        state.withLock { state in
            let leased = Set(state.open.residents.leasedNames())
            let leaving = state.entries.leaving.reduce(0) { $0 + $1.bytes }
            return state.entries.index.all.reduce(state.space.quarantined + leaving) { sum, slot in
                slot.queue == .pinned || leased.contains(slot.name) ? sum : sum + slot.bytes
            }
        }
    }

    /// Takes a batch out of the index, and closes the files of it that are still open: a file that
    /// is unlinked while open is not free.
    private func takeVictims(
        _ count: Int64,
        atMost most: Int,
        except failed: Set<EntryName>
    ) -> [DiskIndex.Slot] {
        let (victims, leaving) = state.withLock { state in
            var victims: [DiskIndex.Slot] = []
            var leaving: [DiskEntry] = []
            var bytes: Int64 = 0
            let leased = Set(state.open.residents.leasedNames())
            // Heads go last, but old ones must not take the place of all that is new.
            let hasManyHeads = state.entries.index.bytes(in: .heads) > state.space.limit / 4
            let batch = min(most, Self.evictionBatch)
            let candidates = state.entries.index.oldest(batch, headsFirst: hasManyHeads) { slot in
                !leased.contains(slot.name) && !failed.contains(slot.name)
            }
            for slot in candidates where bytes < count {
                bytes += slot.bytes
                victims.append(slot)
                state.entries.takeVictim(slot)
                guard let entry = state.open.residents.remove(slot.name) else { continue }
                // Another thread may remove or replace the entry before its files are closed.
                state.space.beginOpening(in: slot.name.shardNumber)
                leaving.append(entry)
            }
            return (victims, leaving)
        }
        for entry in leaving {
            // Not left to the last reference, which may do it later.
            entry.closeFiles()
            endOpening(entry.name)
        }
        return victims
    }

    /// - Returns: false for one that could not be removed.
    private func evict(
        _ victim: DiskIndex.Slot,
        because reason: DiskEvictionReason?,
        result: inout Eviction
    ) -> Bool {
        let key = options.didLeave == nil ? nil : record(of: victim.name)?.record.key
        let isHuge = victim.queue == .used && victim.bodyBytes >= options.hugeBody
        do throws(CacheError) {
            var gone = isHuge ? try shorten(victim.name) : nil
            if gone == nil { gone = try remove(victim.name, key: key, because: reason) }
            guard let gone else { return false }
            result.freed += gone.bytes
            result.count += 1
            if options.didLeave != nil { result.gone.append(gone) }
            return true
        } catch {
            return false
        }
    }

    /// The record of a victim that is out of the index.
    ///
    /// - Throws: ``CacheError/Code/localStorage`` where the disk does not give it; the victim is
    ///   back in the index then, and counts as pinned until a look-up reads its record: it may have
    ///   been pinned since it was chosen.
    func recordToEvict(
        _ lock: borrowing NameLock,
        victim: DiskIndex.Slot
    ) throws(CacheError) -> RecordReader.Found? {
        do throws(CacheError) {
            return try readRecord(of: victim.name)
        } catch {
            var kept = victim
            kept.queue = .pinned
            kept.isGuessed = true
            didSpare(kept, chosenAs: victim)
            throw error
        }
    }

    /// Removes a victim's files, and charges what that frees.
    ///
    /// - Returns: the removal; nil if the victim was pinned, removed or replaced since it was
    ///   chosen, or if a file cannot be removed.
    private func remove(
        _ name: EntryName,
        key: CacheKey?,
        because reason: DiskEvictionReason?
    ) throws(CacheError) -> DiskRemoval? {
        try withLock(of: name) { (lock) throws(CacheError) -> DiskRemoval? in
            guard let victim = state.withLock({ $0.entries.victim(name) }) else { return nil }
            let found = try recordToEvict(lock, victim: victim)
            if let found, let kept = pinned(lock, victim: victim, found: found) {
                didSpare(kept, chosenAs: victim)
                return nil
            }
            var left = victim
            let isRemoved = removeFiles(lock, of: &left)
            finishRemoval(lock, of: victim, left: isRemoved ? nil : left)
            let usual: DiskEvictionReason =
                victim.queue == .prefetched ? .prefetchedUnused : .leastRecentlyUsed
            let gone = DiskRemoval(
                cause: .evicted(reason ?? usual),
                name: victim.name,
                key: found?.record.key ?? key,
                bytes: victim.bytes
            )
            return isRemoved ? gone : nil
        }
    }

    /// What a victim is by now, if it was pinned since it was chosen: it was out of the index by
    /// then.
    private func pinned(
        _ lock: borrowing NameLock,
        victim: DiskIndex.Slot,
        found: RecordReader.Found
    ) -> DiskIndex.Slot? {
        guard found.record.flags.contains(.pinned), found.record.generation == victim.generation
        else { return nil }
        var kept = victim
        kept.queue = .pinned
        // With another flag it is as long as before, if nothing else was changed.
        kept.recordBytes = max(victim.recordBytes, found.status.allocatedBytes)
        return kept
    }

    private func didSpare(_ kept: DiskIndex.Slot, chosenAs victim: DiskIndex.Slot) {
        state.withLock { state in
            state.space.charge(kept.bytes - victim.bytes)
            state.entries.spareVictim(kept)
        }
    }

    /// `left` is the slot of the files that stay after a failure.
    private func finishRemoval(
        _ lock: borrowing NameLock,
        of victim: DiskIndex.Slot,
        left: DiskIndex.Slot?
    ) {
        let late = state.withLock { state -> DiskEntry? in
            state.entries.didChange(victim.name)
            if let left {
                state.counters.housekeepingErrors += 1
                state.space.charge(left.bytes - victim.bytes)
                state.entries.spareVictim(left)
                return nil
            }
            state.entries.forgetVictim(victim.name)
            state.counters.evictions += 1
            guard let entry = state.open.residents[victim.name],
                entry.generation == victim.generation
            else {
                state.space.free(victim.bytes, in: victim.name.shardNumber)
                return nil
            }
            return state.open.residents.remove(victim.name)
        }
        // Opened between choice and removal: lives on without a name until its lease ends.
        late?.detach(lock, charged: victim)
    }

    /// - Returns: whether all files were removed; `victim` is the slot of those that stay.
    private func removeFiles(
        _ lock: borrowing NameLock,
        of victim: inout DiskIndex.Slot
    ) -> Bool {
        do throws(FileSystemError) {
            // The record first: a body alone is swept at the next start, a record alone is damage.
            try fileSystem.unlinkIfPresent(victim.name.record, in: entries)
            victim.recordBytes = 0
            if victim.hasBody {
                try fileSystem.unlinkIfPresent(victim.name.body(victim.generation), in: entries)
            }
            return true
        } catch {
            return false
        }
    }

    /// Reads a record; `nil` if there is none that can be read.
    func record(of name: EntryName) -> RecordReader.Found? {
        do throws(CacheError) {
            return try readRecord(of: name)
        } catch {
            return nil
        }
    }

    /// Reads a record, and throws if the disk fails.
    ///
    /// - Returns: nil where there is none, or a damaged one.
    /// - Throws: ``CacheError/Code/localStorage`` where there may be one that the disk does not
    ///   give.
    func readRecord(of name: EntryName) throws(CacheError) -> RecordReader.Found? {
        guard let entries = entriesIfPresent else { return nil }
        beginOpening(name)
        defer { endOpening(name) }
        var reader = RecordReader(fileSystem: fileSystem, entries: entries, blocking: true)
        defer { reader.close() }
        do throws(FileSystemError) {
            guard case .ready(let found) = try reader.open(name, expecting: nil) else { return nil }
            return found
        } catch {
            guard !error.isAbsence else { return nil }
            count(\.readErrors)
            throw entryError(error, naming: name)
        }
    }
}

extension DiskEntry {
    /// Whether there is a body without a record.
    var isUnrecorded: Bool { state.withLock { $0.body != nil && !$0.isPublished } }

    /// Removes the files' names; open files stay charged until their lease ends.
    func detach(_ lock: borrowing NameLock, charged slot: DiskIndex.Slot?) {
        let (record, freed) = state.withLock { state -> (OpenFile?, Int64) in
            state.isDetached = true
            let kept = state.isInline ? slot?.recordBytes ?? 0 : slot?.bodyBytes ?? 0
            let retired = state.hasRetiredRecord ? slot?.recordBytes ?? 0 : 0
            state.detachedBytes += kept
            state.retiredBytes += retired
            state.hasRetiredRecord = false
            let record = state.isInline ? nil : state.setRecord(lock, to: nil)
            return (record, (slot?.bytes ?? 0) - kept - retired)
        }
        if let record { fileSystem.close(record) }
        store?.releaseDetached(freed, of: name)
    }
}
