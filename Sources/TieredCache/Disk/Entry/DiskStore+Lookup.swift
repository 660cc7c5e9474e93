import Synchronization
import SystemPackage

@_spi(Benchmarks)
extension DiskStore {
    /// The entry if it is in memory; needs neither the disk nor a digest.
    @inline(__always)
    func resident(_ key: CacheKey, isUse: Bool = true) -> ResidentTable.Found? {
        guard let found = state.withLock({ $0.open.residents.find(key) }) else { return nil }
        if isUse { found.entry.markUsed() }
        return found
    }

    /// A lease on a key's entry; `nil` if there is none.
    ///
    /// Opens the file by its name; does not use the index.
    ///
    /// - Parameters:
    ///   - key: the key that identifies the entry.
    ///   - isUse: whether the entry is wanted for its bytes, which moves it away from eviction and
    ///     ends its time as a prefetched one. A look at the metadata, and a prefetch, is no use.
    /// - Returns: the lease.
    /// - Throws: ``CacheError/Code/localStorage`` if the disk fails.
    public func entry(
        for key: CacheKey,
        isUse: Bool = true
    ) throws(CacheError) -> DiskEntry? {
        let resident = resident(key, isUse: isUse)
        if let resident, !resident.isDormant { return resident.entry }
        foldUsesIfDue()
        let name = name(of: key)
        do throws(FileSystemError) {
            return try sparingDescriptors { () throws(FileSystemError) in
                try lookupOnDisk(key, name: name, resident: resident, isUse: isUse)
            }
        } catch {
            if error.errno == .ioError {
                count(\.readErrors)
                return nil
            }
            // Opened, but no file: a directory, or a pipe.
            if error.isAbsence { return nil }
            throw entryError(error, naming: name)
        }
    }

    private func lookupOnDisk(
        _ key: CacheKey,
        name: EntryName,
        resident: ResidentTable.Found?,
        isUse: Bool
    ) throws(FileSystemError) -> DiskEntry? {
        if let resident, case .ready(let entry?) = try wake(resident, blocking: true) {
            return entry
        }
        var leaving = ReleasedEntries()
        defer { retire(leaving) }
        for _ in 0..<3 {
            let found = try openEntry(
                key,
                name: name,
                blocking: true,
                isUse: isUse,
                leaving: &leaving
            )
            if case .ready(let entry) = found { return entry }
        }
        // Writers of this name got in between each time: let them wait for once.
        return try withLock(of: name) { (lock) throws(FileSystemError) in
            let found = try openEntry(
                key,
                name: name,
                blocking: true,
                isUse: isUse,
                leaving: &lock.leaving
            )
            if case .ready(let entry) = found { return entry }
            return nil
        }
    }

    /// Looks up a key if that needs no disk.
    ///
    /// Never blocks: open entries answer from memory, others if kernel caches have what is needed.
    ///
    /// - Parameters:
    ///   - key: the key that identifies the entry.
    ///   - isUse: as in ``entry(for:isUse:)``.
    /// - Returns: the lease, or ``NonBlocking/wouldBlock``.
    public func entryWithoutBlocking(
        for key: CacheKey,
        isUse: Bool = true
    ) -> NonBlocking<DiskEntry?> {
        let resident = resident(key, isUse: isUse)
        if let resident, !resident.isDormant { return .ready(resident.entry) }
        return LockChecker.withoutBlocking("files that are closed here have their names") {
            do throws(FileSystemError) {
                return try openWithoutBlocking(key, resident: resident, isUse: isUse)
            } catch {
                // The blocking form meets the same error and reports it.
                return .wouldBlock
            }
        }
    }

    private func openWithoutBlocking(
        _ key: CacheKey,
        resident: ResidentTable.Found?,
        isUse: Bool
    ) throws(FileSystemError) -> NonBlocking<DiskEntry?> {
        if let resident {
            let woken = try wake(resident, blocking: false)
            guard case .ready(nil) = woken else { return woken }
        }
        let name = name(of: key)
        if isKnownAbsent(name) { return .ready(nil) }
        var leaving = ReleasedEntries()
        defer { retire(leaving, blocking: false) }
        return try openEntry(key, name: name, blocking: false, isUse: isUse, leaving: &leaving)
    }

    /// Whether nothing has the name, as the owner of a directory knows that has read it through: no
    /// other process puts anything there.
    ///
    /// The kernel would have to look at the disk for what it has not been asked for before, which
    /// is so of every miss.
    func isKnownAbsent(_ name: EntryName) -> Bool {
        guard access.canWrite else { return false }
        return state.withLock { $0.entries.isKnownAbsent(name) }
    }

    /// `leaving` gets what the entry takes the place of, for ``retire(_:blocking:)``.
    ///
    /// - Returns: `wouldBlock` as well when the name was written to meanwhile: look again.
    private func openEntry(
        _ key: CacheKey,
        name: EntryName,
        blocking: Bool,
        isUse: Bool,
        leaving: inout ReleasedEntries
    ) throws(FileSystemError) -> NonBlocking<DiskEntry?> {
        guard let entries = entriesIfPresent else { return .ready(nil) }
        let (changes, isGuessed) = state.withLock { state in
            state.space.beginOpening(in: name.shardNumber)
            let isGuessed = state.entries.index[name]?.isGuessed ?? false
            return (state.entries.changes[name.shardNumber], isGuessed)
        }
        defer { endOpening(name) }
        var reader = RecordReader(fileSystem: fileSystem, entries: entries, blocking: blocking)
        defer { reader.close() }
        guard case .ready(let found) = try reader.open(name, expecting: key) else {
            return .wouldBlock
        }
        guard let found else {
            if reader.isDamaged { didMeetDamagedRecord(name, of: key) }
            return .ready(nil)
        }
        guard let opened = try body(of: found, &reader) else { return .wouldBlock }
        let entry = DiskEntry(store: self, name: name, record: found.record, state: opened)
        entry.isUsed.store(isUse, ordering: .relaxed)
        let news = isGuessed ? slot(of: found.record, name) : nil
        let admitted = admit(entry, slot: news, ifUnchangedSince: changes, leaving: &leaving)
        if case .ready(let found) = admitted, found === entry { return admitted }
        // What is removed meanwhile is not free while this has it open.
        beginOpening(name)
        DiskStoreOptions.run(later: options.runLater) { [self] in
            entry.closeFiles()
            endOpening(name)
        }
        return admitted
    }

    /// The state of an entry whose record was read; `nil` if the body's file would block.
    private func body(
        of found: RecordReader.Found,
        _ reader: inout RecordReader
    ) throws(FileSystemError) -> DiskEntryState? {
        let record = found.record
        var table = found.table
        var state = DiskEntryState(table: table, metadata: record.metadata, flags: record.flags)
        state.isPublished = true
        var status: FileStatus? = found.status
        if state.isInline {
            state.bodyOffset = found.bodyOffset
            state.body = reader.takeFile()
        } else if table.storedCount > 0 {
            let writable = access.canWrite && !table.isComplete
            state.isBodyWritable = writable
            switch try reader.openBody(
                of: found.name,
                generation: record.generation,
                writable: writable
            ) {
            case .ready(let body): (state.body, status) = (body?.file, body?.status)
            case .wouldBlock: return nil
            }
            if state.body == nil {
                state.table = BlockTable(completeLength: record.completeLength)
                return state
            }
        }
        if !access.canWrite, let file = state.body { share(file) }
        guard let status, state.body != nil, table.isComplete else { return state }
        state.verification = status.verification
        if isVerified(found.name, generation: record.generation, state: state.verification) {
            table.verifyAll()
            state.table = table
        }
        return state
    }

    /// Takes a shared lock that tells the owner of an open body, so that no part of it is discarded
    /// meanwhile.
    func share(_ file: OpenFile) {
        do throws(FileSystemError) {
            _ = try fileSystem.share(file)
        } catch {
            // Read all the same: without the lock each block is hashed at every read.
            count(\.readErrors)
        }
    }

    private func isVerified(_ name: EntryName, generation: UInt64, state: UInt64) -> Bool {
        guard let slot = self.state.withLock({ $0.entries.index[name] }) else { return false }
        return slot.generation == generation && slot.verification == state
    }

    /// Makes a freshly opened entry the one that all lookups share, and updates the index from its
    /// record before anything can change the entry.
    private func admit(
        _ entry: DiskEntry,
        slot news: DiskIndex.Slot?,
        ifUnchangedSince changes: UInt32,
        leaving: inout ReleasedEntries
    ) -> NonBlocking<DiskEntry?> {
        // A guest does not see the owner's changes, so it looks into the file each time.
        guard access.canWrite else { return .ready(entry) }
        let (result, left) = state.withLock {
            state -> (NonBlocking<DiskEntry?>, ReleasedEntries) in
            guard !state.open.isClosed else {
                entry.invalidateVerification()
                return (.ready(entry), .init())
            }
            guard state.entries.changes[entry.name.shardNumber] == changes else {
                return (.wouldBlock, .init())
            }
            if let news { state.entries.index.learn(news) }
            var leaving = ReleasedEntries()
            if let dormant = state.open.residents.find(entry.key),
                let removed = state.open.residents.removeDormant(dormant)
            {
                leaving.entries.append(removed)
            }
            if let other = state.open.residents[entry.name] {
                // Opened by two threads at once; the first one counts.
                return (.ready(other.key == entry.key ? other : entry), leaving)
            }
            state.open.residents.insert(entry)
            leaving.append(shrink(&state))
            return (.ready(entry), leaving)
        }
        leaving.append(left)
        return result
    }

    /// Keeps the descriptor cache within its bounds.
    ///
    /// - Parameters:
    ///   - state: the cache's.
    ///   - maximum: how many entries may be open; nil for the option's value.
    ///   - maximumCost: the memory for dormant entries in bytes; nil for the option's value.
    /// - Returns: the entries that leave, for ``retire(_:blocking:)``, which has to follow: removed
    ///   files stay allocated while they are open.
    func shrink(
        _ state: inout State,
        to maximum: Int? = nil,
        maximumDormantCost maximumCost: Int? = nil
    ) -> ReleasedEntries {
        let leaving = state.open.residents.shrink(
            to: maximum ?? options.maximumOpenEntries,
            maximumDormantCost: maximumCost ?? options.maximumHeadMemory
        )
        leaving.forEachFile { state.space.beginOpening(in: $1.shardNumber) }
        for entry in leaving.unused { state.space.beginOpening(in: entry.name.shardNumber) }
        return leaving
    }

    /// Closes the files of entries that leave, and records their last use.
    ///
    /// - Parameters:
    ///   - leaving: the entries.
    ///   - blocking: whether what is due is written: later, or within this call, which then waits
    ///     for the lock of a name. If not, a use is noted in memory alone: its time in the record is
    ///     a hint for the next start, and not worth a wait.
    func retire(_ leaving: ReleasedEntries, blocking: Bool = true) {
        if blocking, options.runLater == nil { LockChecker.assertMayTake(.names) }
        leaving.forEachFile { file, name in
            fileSystem.close(file)
            endOpening(name)
        }
        var due = leaving.entries.compactMap(noteLeaving)
        for entry in leaving.unused {
            if let retired = noteLeaving(entry) { due.append(retired) }
            if let file = entry.giveUpBody() { fileSystem.close(file) }
            endOpening(entry.name)
        }
        guard blocking, !due.isEmpty else { return }
        if state.withLock({ $0.open.keep(due) }) { runLater { $0.writeRetired() } }
    }

    /// - Returns: the entry, if something of it is due to be written.
    private func noteLeaving(_ entry: DiskEntry) -> RetiredEntry? {
        let (isVerified, verification) = entry.state.withLock { state in
            (state.table.isComplete && state.table.isVerified, state.verification)
        }
        let isUsed = entry.isUsed.exchange(false, ordering: .relaxed)
        let now = isUsed ? useTime() : 0
        state.withLock { state in
            if isUsed { state.entries.touch(entry.name, at: now) }
            state.entries.index.update(entry.name, generation: entry.generation) { slot in
                slot.verification = isVerified ? verification : 0
            }
        }
        let isDue = isUsed && isUseDue(now, of: entry)
        guard isDue || entry.mustSettle else { return nil }
        return RetiredEntry(entry: entry, use: isDue ? now : nil)
    }

    /// Writes what is due of the entries that have left memory.
    func writeRetired() {
        while let next = state.withLock({ $0.open.takeRetired() }) {
            if let use = next.use { persistUse(of: next.entry, use) }
            settle(next.entry)
        }
    }

    /// Runs work that may wait for writes, so that no lookup does.
    func runLater(_ work: @escaping @Sendable (DiskStore) -> Void) {
        guard let runLater = options.runLater else { return work(self) }
        runLater { work(self) }
    }
}

extension FileStatus {
    /// A number that changes when another process changes the file; never 0.
    var verification: UInt64 {
        var hasher = UInt64(bitPattern: modified) &* 0x9E37_79B9_7F4A_7C15
        hasher ^= identity &* 0xBF58_476D_1CE4_E5B9
        hasher ^= UInt64(bitPattern: size) &* 0x94D0_49BB_1331_11EB
        // 0 means that nothing was verified.
        return hasher | 1
    }
}
