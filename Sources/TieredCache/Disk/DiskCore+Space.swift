import Synchronization
import SystemPackage

extension DiskCore {
    /// Reserves room before a write (invariant 4), evicting for it if need be.
    ///
    /// - Throws: ``CacheError/Code/localStorage`` when only pinned entries and those in use are left,
    ///   or when the volume has less free than it must keep.
    func reserve(_ count: Int64) throws(CacheError) {
        try loadIndex()
        try checkVolume(count)
        var isLastTry = false
        while true {
            switch state.withLock({ $0.ledger.admit(count, isLastTry: isLastTry) }) {
            case .granted:
                return
            case .tooLarge:
                throw tooLarge(count)
            case .needsRoom(let missing):
                guard !isLastTry else {
                    throw CacheError(
                        .localStorage,
                        "the cache's limit of \(options.limit) bytes is taken by what is pinned or in use"
                    )
                }
                evict(atLeast: missing)
                isLastTry = true
            }
        }
    }

    func endReservation(_ count: Int64) {
        state.withLock { $0.ledger.release(count) }
    }

    /// Frees what an entry that had no name any more was booked with.
    func releaseDetached(_ bytes: Int64) {
        guard bytes != 0 else { return }
        state.withLock { $0.ledger.book(-bytes) }
    }

    /// What `count` bytes can take on disk: whole blocks, and one for the file's own structures.
    static func cost(_ count: Int) -> Int64 {
        (Int64(count) + 4095) / 4096 * 4096 + 4096
    }

    /// Asks the volume at most every 100 ms, or when as much was written as it had to spare.
    private func checkVolume(_ count: Int64) throws(CacheError) {
        let now = timeSource.monotonicTime().nanoseconds
        let isKnown = state.withLock { state in
            guard now < state.roomCheckedUntil, state.roomLeft >= count else { return false }
            state.roomLeft -= count
            return true
        }
        if isKnown { return }
        let available: Int64
        do throws(FileSystemError) {
            available = try fileSystem.volume(of: root).available
        } catch {
            throw CacheError(error, options.root)
        }
        let room = available - minimumFree - count
        guard room >= 0 else {
            throw CacheError(
                .localStorage,
                "the volume of \(options.root) has \(available) bytes free, "
                    + "less than must stay free; free disk space"
            )
        }
        state.withLock { state in
            state.roomCheckedUntil = now + 100_000_000
            state.roomLeft = room / 4
        }
    }

    // MARK: Evicting

    /// Removes entries in order of use until `count` bytes are free; leaves what is pinned or leased.
    ///
    /// - Returns: the bytes freed.
    @discardableResult
    func evict(atLeast count: Int64, _ reason: DiskEvictionReason? = nil) -> Int64 {
        foldUses()
        var freed: Int64 = 0
        // Each entry is tried once: those that cannot be removed must not keep us here.
        var failed: Set<EntryName> = []
        while freed < count {
            let (victims, leaving) = takeVictims(count - freed, except: failed)
            guard !victims.isEmpty else { break }
            withExtendedLifetime(leaving) {}
            for victim in victims {
                if remove(victim, reason) {
                    freed += victim.bytes
                } else {
                    failed.insert(victim.name)
                }
            }
        }
        return freed
    }

    /// Takes a batch out of the index; what is still open goes with it.
    private func takeVictims(
        _ count: Int64,
        except failed: Set<EntryName>
    ) -> ([DiskIndex.Slot], [DiskEntry]) {
        state.withLock { state in
            var victims: [DiskIndex.Slot] = []
            var leaving: [DiskEntry] = []
            var bytes: Int64 = 0
            let leased = state.leasedNames()
            let candidates = state.index.oldest(64) { slot in
                !leased.contains(slot.name) && !failed.contains(slot.name)
            }
            for slot in candidates where bytes < count {
                bytes += slot.bytes
                victims.append(slot)
                state.index.remove(slot.name)
                if let entry = state.residents.remove(slot.name) { leaving.append(entry) }
            }
            return (victims, leaving)
        }
    }

    /// Removes a victim's files, and books what that frees.
    private func remove(_ victim: DiskIndex.Slot, _ reason: DiskEvictionReason?) -> Bool {
        let key = options.didEvict == nil ? nil : key(of: victim)
        let isRemoved = turns.take(victim.name) { () -> Bool in
            // Somebody may have stored the name anew since the victim was chosen.
            let isTaken = state.withLock { $0.index[victim.name] != nil }
            let isRemoved = removeFiles(victim, andRecord: !isTaken)
            finishRemoval(of: victim, isRemoved: isRemoved, isTaken: isTaken)
            return isRemoved
        }
        guard isRemoved else { return false }
        if let key {
            let usual: DiskEvictionReason =
                victim.queue == .prefetched ? .prefetchedUnused : .leastRecentlyUsed
            options.didEvict?(key, reason ?? usual, victim.bytes)
        }
        return true
    }

    private func finishRemoval(of victim: DiskIndex.Slot, isRemoved: Bool, isTaken: Bool) {
        let late = state.withLock { state -> DiskEntry? in
            guard isRemoved else {
                state.counters.housekeepingErrors += 1
                if !isTaken { state.index.insert(victim) }
                return nil
            }
            state.changes[victim.name.shardNumber] &+= 1
            state.counters.evictions += 1
            guard let entry = state.residents[victim.name], entry.generation == victim.generation
            else {
                state.ledger.book(-victim.bytes)
                return nil
            }
            return state.residents.remove(victim.name)
        }
        // Opened between choice and removal: lives on without a name until its lease ends.
        late?.detach(booked: victim)
    }

    private func removeFiles(_ victim: DiskIndex.Slot, andRecord: Bool) -> Bool {
        guard let entries else { return false }
        do throws(FileSystemError) {
            if andRecord { try unlinkIfPresent(victim.name.record, in: entries) }
            if victim.hasBody {
                try unlinkIfPresent(victim.name.body(victim.generation), in: entries)
            }
            return true
        } catch {
            return false
        }
    }

    func unlinkIfPresent(_ path: String, in directory: OpenFile) throws(FileSystemError) {
        do throws(FileSystemError) {
            try fileSystem.unlink(path, in: directory)
        } catch  where error.errno == .noSuchFileOrDirectory {
            return
        }
    }

    private func key(of victim: DiskIndex.Slot) -> CacheKey? {
        record(of: victim.name)?.record.key
    }

    /// Reads a record for its own sake; `nil` if there is none that can be read.
    func record(of name: EntryName) -> RecordReader.Found? {
        guard let entries else { return nil }
        var reader = RecordReader(fileSystem: fileSystem, entries: entries, blocking: true)
        defer { reader.close() }
        do throws(FileSystemError) {
            guard case .ready(let found) = try reader.open(name, expecting: nil) else { return nil }
            return found
        } catch {
            count(\.readErrors)
            return nil
        }
    }
}

extension DiskCore.State {
    fileprivate mutating func leasedNames() -> Set<EntryName> {
        Set(residents.leasedNames())
    }
}

extension DiskEntry {
    /// Gives up the files' names: what stays open stays booked until the lease ends.
    func detach(booked slot: DiskIndex.Slot?) {
        let (record, freed) = state.withLock { state -> (OpenFile?, Int64) in
            state.isDetached = true
            let kept = state.isInline ? slot?.recordBytes ?? 0 : slot?.bodyBytes ?? 0
            state.detachedBytes += kept
            let record = state.isInline ? nil : state.record
            if record != nil { state.record = nil }
            return (record, (slot?.bytes ?? 0) - kept)
        }
        if let record { core.fileSystem.close(record) }
        core.releaseDetached(freed)
    }
}
