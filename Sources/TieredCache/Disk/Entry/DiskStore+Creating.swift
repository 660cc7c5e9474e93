import SystemPackage

extension DiskStore {
    /// Starts a new generation, which replaces the entry of the same name as `succession` says.
    ///
    /// - Throws: also `.notStorable`, and `.cancelled` if it is no longer wanted.
    func makeEntry(
        for key: CacheKey,
        metadata: [UInt8],
        completeLength: Int64?,
        class entryClass: DiskEntryClass,
        succession: DiskSuccession
    ) throws(CacheError) -> DiskEntry {
        try beginWriting(looks: false)
        defer { endWriting() }
        try checkSizes(key, metadata: metadata.count, completeLength: completeLength)
        try prepareIndex(for: name(of: key))
        let entry = newEntry(
            for: key,
            metadata: metadata,
            completeLength: completeLength,
            flags: entryClass.flags
        )
        try withLock(of: entry.name) { (lock) throws(CacheError) in
            try succession.requireWanted()
            guard try !inheritPin(lock, to: entry, succession: succession) else {
                if let completeLength {
                    try checkRoom(besidePins: Self.cost(ofBody: completeLength))
                }
                return beginSuccession(lock, of: entry, succession: succession)
            }
            giveUpSuccessor(lock)
            // Files put there from outside are met and replaced by the record.
            if state.withLock({ $0.entries.mayHaveFiles(entry.name) }) { try removeFiles(lock) }
            replace(&lock, with: entry, slot: nil, because: succession.cause)
        }
        if completeLength == 0 { try publishEmpty(entry) }
        return entry
    }

    /// Stores a complete body, which replaces the entry of the same name as `succession` says.
    ///
    /// - Throws: also `.notStorable`, and `.cancelled` if it is no longer wanted.
    @discardableResult
    func store(
        _ bytes: UnsafeRawBufferPointer,
        for key: CacheKey,
        metadata: [UInt8],
        class entryClass: DiskEntryClass,
        succession: DiskSuccession
    ) throws(CacheError) -> DiskEntry {
        guard bytes.count <= options.inlineLimit else {
            let entry = try makeEntry(
                for: key,
                metadata: metadata,
                completeLength: Int64(bytes.count),
                class: entryClass,
                succession: succession
            )
            try entry.beginWriting(at: 0).writeAndEnd(bytes)
            return entry
        }
        // `DiskTier` has looked when it gave this store to the caller.
        try beginWriting(looks: false)
        defer { endWriting() }
        try checkSizes(key, metadata: metadata.count, completeLength: Int64(bytes.count))
        let entry = newEntry(
            for: key,
            metadata: metadata,
            completeLength: Int64(bytes.count),
            flags: entryClass.flags
        )
        try storeInline(bytes, in: entry, succession: succession)
        return entry
    }

    private func newEntry(
        for key: CacheKey,
        metadata: [UInt8],
        completeLength: Int64?,
        flags: Record.Flags
    ) -> DiskEntry {
        let record = Record(
            key: key,
            metadata: metadata,
            generation: nextGeneration(),
            completeLength: completeLength,
            created: timeSource.wallTime(),
            flags: flags
        )
        let state = DiskEntryState(
            table: BlockTable(completeLength: completeLength),
            metadata: metadata,
            flags: flags,
            isNew: true
        )
        return DiskEntry(store: self, name: name(of: key), record: record, state: state)
    }

    /// Writes a complete body and its record as one file.
    ///
    /// The entry must not be published; the file replaces the one that has the name.
    func storeInline(
        _ bytes: UnsafeRawBufferPointer,
        in entry: DiskEntry,
        succession: DiskSuccession = DiskSuccession()
    ) throws(CacheError) {
        let checksum = blockChecksum(bytes)
        let cost = Self.cost(Int(entry.record.tableOffset) + 8 + bytes.count)
        try reserve(cost, for: entry.name)
        defer { endReservation(cost) }
        try sparingRoom(cost) { () throws(CacheError) in
            try storeInline(bytes, checksum: checksum, in: entry, succession: succession)
        }
        try syncIfPinned(entry)
    }

    private func storeInline(
        _ bytes: UnsafeRawBufferPointer,
        checksum: UInt64,
        in entry: DiskEntry,
        succession: DiskSuccession
    ) throws(CacheError) {
        try withLock(of: entry.name) { (lock) throws(CacheError) in
            try succession.requireWanted()
            if entry.isSuperseded {
                // Removed while it was being filled: only its leases still want it.
                return try keepInMemoryless(lock, bytes: bytes, checksum: checksum, of: entry)
            }
            _ = try inheritPin(lock, to: entry, succession: succession)
            var record = entry.record
            record.flags.insert(.inline)
            let head = record.encode(table: bytes.isEmpty ? [] : [checksum])
            try naming(entry.name) { () throws(FileSystemError) in
                let (file, status) = try createRecord(lock, of: entry, head: head, body: bytes)
                let failure = settleName(of: entry)
                entry.didStoreInline(
                    in: file,
                    at: Int64(head.count),
                    checksum: checksum,
                    status: status
                )
                publish(
                    &lock,
                    of: entry,
                    record: status,
                    bodyBytes: 0,
                    because: succession.cause,
                    keepsOldBody: failure != nil
                )
                didTakeName(lock, entry: entry)
                if let failure { throw failure }
            }
        }
    }

    /// An entry without a body to wait for.
    func publishEmpty(_ entry: DiskEntry) throws(CacheError) {
        guard !entry.state.withLock({ $0.awaitsDecision }) else { return }
        try storeEmpty(entry)
    }

    func storeEmpty(_ entry: DiskEntry) throws(CacheError) {
        try storeInline(UnsafeRawBufferPointer(start: nil, count: 0), in: entry)
    }

    private func keepInMemoryless(
        _ lock: borrowing NameLock,
        bytes: UnsafeRawBufferPointer,
        checksum: UInt64,
        of entry: DiskEntry
    ) throws(CacheError) {
        guard !bytes.isEmpty else { return }
        try naming(entry.name) { () throws(FileSystemError) in
            let file = try bodyFile(lock, of: entry)
            try fileSystem.write(bytes, to: file, at: 0)
            entry.state.withLock { state in
                state.table.insert(0, checksum: checksum)
                state.didChangeBytes(of: entry)
            }
            entry.refreshHotBody()
            chargeDetached(lock, for: entry, bytes: try bodyBytes(of: entry))
        }
    }

    // MARK: Files

    /// Creates the record under its own name, or through `staging` where the name is taken.
    ///
    /// If this throws, nothing has changed: no file may exist that cannot be charged.
    func createRecord(
        _ lock: borrowing NameLock,
        of entry: DiskEntry,
        head: [UInt8],
        body: UnsafeRawBufferPointer = UnsafeRawBufferPointer(start: nil, count: 0)
    ) throws(FileSystemError) -> (file: OpenFile, result: FileStatus) {
        let isKnown = state.withLock { $0.entries.known(lock) != nil }
        if !isKnown {
            do throws(FileSystemError) {
                return try create(lock, at: entry.name.record, in: entries) {
                    (file) throws(FileSystemError) in
                    try write(head, followedBy: body, to: file)
                    return try fileSystem.status(of: file)
                }
            } catch  where error.errno == .fileExists {
                // Not in the index and yet there: damaged, or put there from outside.
            }
        }
        return try replaceRecordFile(lock, of: entry, head: head, body: body)
    }

    /// Writes the record to `staging` and gives it the name of the old one.
    ///
    /// The last call is the one that changes the name: where this throws, nothing has changed.
    func replaceRecordFile(
        _ lock: borrowing NameLock,
        of entry: DiskEntry,
        head: [UInt8],
        body: UnsafeRawBufferPointer = UnsafeRawBufferPointer(start: nil, count: 0)
    ) throws(FileSystemError) -> (file: OpenFile, result: FileStatus) {
        guard let staging else { throw FileSystemError(.create, errno: .noSuchFileOrDirectory) }
        let staged = entry.name.staged(entry.generation)
        // A process that was killed may have left one, which O_EXCL would refuse.
        try fileSystem.unlinkIfPresent(staged, in: staging)
        return try create(lock, at: staged, in: staging) { (file) throws(FileSystemError) in
            try write(head, followedBy: body, to: file)
            // The name of what was promised must never stand for less than that.
            if entry.isPinned { try fileSystem.sync(file, dataOnly: false) }
            let status = try fileSystem.status(of: file)
            try ensureShard(lock)
            try fileSystem.rename(staged, in: staging, to: entry.name.record, in: entries)
            return status
        }
    }

    private func write(
        _ head: [UInt8],
        followedBy body: UnsafeRawBufferPointer,
        to file: OpenFile
    ) throws(FileSystemError) {
        try head.withUnsafeBufferPointer { (head) throws(FileSystemError) in
            try fileSystem.write(UnsafeRawBufferPointer(head), followedBy: body, to: file, at: 0)
        }
    }

    /// Creates a file and fills it; no trace of it stays if that fails.
    func create<Result>(
        _ lock: borrowing NameLock,
        at path: String,
        in directory: OpenFile,
        write: (OpenFile) throws(FileSystemError) -> Result
    ) throws(FileSystemError) -> (file: OpenFile, result: Result) {
        let file = try createFile(lock, at: path, in: directory)
        do throws(FileSystemError) {
            return (file, try write(file))
        } catch {
            fileSystem.close(file)
            attempt { () throws(FileSystemError) in
                try fileSystem.unlinkIfPresent(path, in: directory)
            }
            throw error
        }
    }

    private func createFile(
        _ lock: borrowing NameLock,
        at path: String,
        in directory: OpenFile
    ) throws(FileSystemError) -> OpenFile {
        let isOfEntry = try directory == entries
        if isOfEntry { try ensureShard(lock) }
        do throws(FileSystemError) {
            return try open(path, in: directory, mode: .createNew)
        } catch  where error.errno == .noSuchFileOrDirectory {
            guard isOfEntry else {
                didMissDirectory()
                throw error
            }
            // The directory was removed from outside.
            let shard = lock.name.shardNumber
            state.withLock { $0.entries.hasShard[shard] = false }
            try ensureShard(lock)
            return try open(path, in: directory, mode: .createNew)
        }
    }

    private func ensureShard(_ lock: borrowing NameLock) throws(FileSystemError) {
        let name = lock.name
        if state.withLock({ $0.entries.hasShard[name.shardNumber] }) { return }
        do throws(FileSystemError) {
            try fileSystem.makeDirectory(name.shard, in: entries)
        } catch  where error.errno == .fileExists {
            // A link in its place must not lead us out of the directory.
            guard try fileSystem.status(of: name.shard, in: entries).kind == .directory else {
                throw FileSystemError(.create, errno: .notDirectory)
            }
        } catch {
            if error.errno == .noSuchFileOrDirectory { didMissDirectory() }
            throw error
        }
        state.withLock { $0.entries.hasShard[name.shardNumber] = true }
    }

    /// Removes the files of the name, record first.
    func removeFiles(_ lock: borrowing NameLock) throws(CacheError) {
        let name = lock.name
        try naming(name) { () throws(FileSystemError) in
            let slot = state.withLock { $0.entries.known(lock) }
            let generation = slot?.generation ?? record(of: name)?.record.generation
            try fileSystem.unlinkIfPresent(name.record, in: entries)
            if let generation, slot?.hasBody != false {
                try fileSystem.unlinkIfPresent(name.body(generation), in: entries)
            }
        }
    }

    /// Replaces the entry that had the name in index, ledger and descriptor cache.
    ///
    /// `keepsOldBody`: the body of the old entry stays on disk without a record, and stays charged
    /// until the directory is opened again and swept.
    ///
    /// - Returns: the slot of the old entry.
    @discardableResult
    func replace(
        _ lock: inout NameLock,
        with entry: DiskEntry?,
        slot: DiskIndex.Slot?,
        because cause: DiskRemoval.Cause? = .replaced,
        of key: CacheKey? = nil,
        keepsOldBody: Bool = false
    ) -> DiskIndex.Slot? {
        let name = lock.name
        let known = state.withLock { $0.entries.known(lock) }
        if let known, let slot, known.hasBody, known.generation != slot.generation {
            if keepsOldBody {
                state.withLock { $0.space.charge(known.bodyBytes) }
            } else {
                // Before it is charged as free.
                discardBody(of: name, generation: known.generation)
            }
        }
        var isDamaged = false
        let (oldSlot, old, leaving) = state.withLock {
            state -> (DiskIndex.Slot?, DiskEntry?, ReleasedEntries) in
            isDamaged = state.entries.forgetDamaged(name)
            state.entries.didChange(name)
            let oldSlot = state.entries.remove(name)
            let old = state.open.residents[name] === entry ? nil : state.open.residents.remove(name)
            if let slot {
                state.entries.index.insert(slot)
                state.space.charge(slot.bytes)
            }
            if old == nil { state.space.free(oldSlot?.bytes ?? 0, in: name.shardNumber) }
            guard let entry, !state.open.isClosed, state.open.residents[name] == nil else {
                return (oldSlot, old, .init())
            }
            state.open.residents.insert(entry)
            return (oldSlot, old, shrink(&state))
        }
        // Its body was created and nothing of it recorded: no slot knows of the file.
        if let old, old.isUnrecorded { discardBody(of: name, generation: old.generation) }
        old?.detach(lock, charged: oldSlot)
        lock.leaving.append(leaving)
        guard let oldSlot, oldSlot.generation != slot?.generation else { return nil }
        if let cause {
            let key = old?.key ?? entry?.key ?? key
            didLose(
                DiskRemoval(
                    cause: isDamaged ? .corrupted : cause,
                    name: name,
                    key: key,
                    bytes: oldSlot.bytes
                )
            )
        }
        return oldSlot
    }
}
