import SystemPackage

// The next generation of a complete pinned entry has no name until it is complete. Until then the
// old one is found, by every lookup and after any crash; then the record of the new one takes the
// name in one step, and the old body goes. See docs/disk-format.md.
extension DiskStore {
    /// The successor of a key's entry, while a transfer fills it or a reader leases it.
    func successor(of key: CacheKey) -> DiskEntry? {
        guard !state.withLock({ $0.open.successors.isEmpty }) else { return nil }
        let name = name(of: key)
        let entry = state.withLock { $0.open.successors[name] }
        return entry?.key == key ? entry : nil
    }

    /// Makes a complete successor the entry that has the name; does nothing for any other.
    ///
    /// - Throws: ``CacheError/Code/localStorage``: the old entry has the name then, or the new one
    ///   may not survive a power cut.
    func takeName(_ entry: DiskEntry) throws(CacheError) {
        guard entry.isSuccessor, entry.isComplete else { return }
        try beginWriting()
        defer { endWriting() }
        guard entry.completeLength != 0 else { return try storeEmpty(entry) }
        let cost = Self.cost(entry.recordLength)
        try reserve(cost, for: entry.name)
        defer { endReservation(cost) }
        try naming(entry.name) { () throws(FileSystemError) in
            if entry.isPinned { try syncBody(of: entry) }
        }
        try sparingRoom(cost) { () throws(CacheError) in
            try withLock(of: entry.name) { (lock) throws(CacheError) in
                try takeName(&lock, for: entry)
            }
        }
        entry.refreshHotBody()
        try syncIfPinned(entry)
    }

    private func takeName(_ lock: inout NameLock, for entry: DiskEntry) throws(CacheError) {
        guard entry.isSuccessor, entry.isComplete else { return }
        let head = entry.record.encode(
            table: entry.state.withLock { $0.table.checksums },
            comparison: entry.comparisonWord
        )
        try naming(entry.name) { () throws(FileSystemError) in
            let bodyBytes = try bodyBytes(of: entry)
            let (file, status) = try replaceRecordFile(lock, of: entry, head: head)
            fileSystem.close(file)
            let failure = settleName(of: entry)
            entry.state.withLock { state in
                state.isPublished = true
                state.changes += 1
                if failure == nil { state.syncedChanges = state.changes }
            }
            publish(
                &lock,
                of: entry,
                record: status,
                bodyBytes: bodyBytes,
                keepsOldBody: failure != nil
            )
            didTakeName(lock, entry: entry)
            if let failure { throw failure }
        }
    }

    /// Syncs a body, bytes and name, before a record refers to it.
    private func syncBody(of entry: DiskEntry) throws(FileSystemError) {
        guard let body = entry.state.withLock({ $0.body }) else { return }
        try fileSystem.sync(body, dataOnly: false)
        try syncNames(of: entry.name)
    }

    /// Waits until a pinned record's name is on the medium, before the old entry is removed.
    ///
    /// - Returns: the error, if it may not be: the body of the old record has to stay then, because
    ///   a power cut may bring that record back.
    func settleName(of entry: DiskEntry) -> FileSystemError? {
        guard entry.isPinned else { return nil }
        do throws(FileSystemError) {
            try syncNames(of: entry.name)
            return nil
        } catch {
            return error
        }
    }

    // MARK: With the lock of the name

    /// Pins a new entry if the entry that has its name is pinned: a pin belongs to the key
    /// (invariant 5).
    ///
    /// - Returns: whether the name has to wait until the new entry is complete.
    /// - Throws: `.notStorable` if the pinned entry is to stay; `.localStorage` if its record
    ///   cannot be read.
    func inheritPin(
        _ lock: borrowing NameLock,
        to entry: DiskEntry,
        succession: DiskSuccession
    ) throws(CacheError) -> Bool {
        guard let isComplete = try isPinnedComplete(lock, besides: entry) else { return false }
        guard !succession.sparesPinned else {
            throw CacheError(.notStorable, "what is stored of \(entry.key.redacted) is pinned")
        }
        entry.state.withLock { _ = $0.flags.insert(.pinned) }
        return isComplete
    }

    /// Whether the entry that has the name of a new entry is complete; nil unless it is pinned and
    /// has the same key.
    ///
    /// - Throws: `.localStorage` if a pinned record cannot be read.
    private func isPinnedComplete(
        _ lock: borrowing NameLock,
        besides entry: DiskEntry
    ) throws(CacheError) -> Bool? {
        let name = lock.name
        let (open, isPinned) = state.withLock { state in
            (state.open.residents[name], state.entries.known(lock)?.queue == .pinned)
        }
        if let open {
            guard open !== entry, open.key == entry.key, open.isPinned else { return nil }
            return open.isComplete
        }
        guard isPinned, let found = try readRecord(of: name), found.record.key == entry.key else {
            return nil
        }
        return found.table.isComplete
    }

    /// Registers a new entry as the successor of the name; an earlier successor is discarded.
    func beginSuccession(
        _ lock: borrowing NameLock,
        of entry: DiskEntry,
        succession: DiskSuccession
    ) {
        giveUpSuccessor(lock)
        entry.state.withLock { $0.succession = .waiting(forDecision: succession.awaitsDecision) }
        state.withLock { $0.open.successors.insert(entry) }
    }

    func didTakeName(_ lock: borrowing NameLock, entry: DiskEntry) {
        guard entry.isSuccessor else {
            giveUpSuccessor(lock)
            return
        }
        entry.state.withLock { $0.succession = .done }
        _ = state.withLock { $0.open.successors.remove(entry.name) }
    }

    /// Discards the successor that waits for the name; leases on it stay readable.
    ///
    /// - Returns: whether there was one.
    @discardableResult
    func giveUpSuccessor(_ lock: borrowing NameLock) -> Bool {
        let name = lock.name
        guard let entry = state.withLock({ $0.open.successors.remove(name) }) else { return false }
        if entry.isUnrecorded { discardBody(of: name, generation: entry.generation) }
        entry.detach(lock, charged: nil)
        return true
    }

    /// Discards all successors: the store is about to be closed, so none of them can become
    /// complete.
    func giveUpSuccessors() {
        guard lock.beginWrite() else { return }
        defer { endWriting() }
        for name in state.withLock({ $0.open.successors.names }) {
            withLock(of: name) { _ = giveUpSuccessor($0) }
        }
    }

    // MARK: Pins

    /// Pins or unpins the entry of a key.
    ///
    /// - Returns: whether there is an entry.
    func setPinned(_ isPinned: Bool, of key: CacheKey) throws(CacheError) -> Bool {
        while let entry = try entry(for: key, isUse: false) {
            if entry.isPinned != isPinned || successor(of: key) != nil {
                try setPinned(isPinned, of: entry)
            } else if isPinned, access.canWrite {
                // The pin before may have failed to reach the medium, and files go from outside.
                try syncIfPinned(entry)
                try requireNameIfPromised(of: entry)
            }
            // An entry that took the name meanwhile does not have the pin yet.
            if !entry.isSuperseded { return true }
        }
        return false
    }

    /// Pins or unpins an entry, and the other generation of its key if there is one.
    func setPinned(_ isPinned: Bool, of entry: DiskEntry) throws(CacheError) {
        try replaceRecord(of: entry) { $0.setPinned(isPinned) }
        guard !entry.isSuperseded else { return }
        let other =
            entry.isSuccessor
            ? try self.entry(for: entry.key, isUse: false) : successor(of: entry.key)
        guard let other, other !== entry else { return }
        try replaceRecord(of: other) { $0.setPinned(isPinned) }
    }
}

extension DiskEntry {
    /// Whether the entry waits for a name that a complete pinned one has.
    var isSuccessor: Bool {
        state.withLock { state in
            guard case .waiting = state.succession else { return false }
            return !state.isDetached
        }
    }

    /// Whether the entry has been, or is, a successor.
    var hasFollowedPinned: Bool {
        state.withLock { $0.succession != .none }
    }

    /// Gives a successor its name once it is complete, where it waits for that; does nothing for
    /// any other entry.
    ///
    /// - Throws: ``CacheError/Code/localStorage``; the old entry keeps the name then.
    func takeName() throws(CacheError) {
        if isSuccessor { try openStore().takeName(self) }
    }

    /// The same for a successor that does not wait for a decision.
    ///
    /// - Returns: whether it has its name now, and did not before.
    func takeNameUnlessJudged() throws(CacheError) -> Bool {
        guard isSuccessor, !state.withLock({ $0.awaitsDecision }) else { return false }
        try openStore().takeName(self)
        return !isSuccessor
    }

    /// The most bytes of its record, an inline body excepted.
    fileprivate var recordLength: Int {
        let blocks = state.withLock { $0.table.checksums.count }
        return Int(record.tableOffset) + 8 * (blocks + 1)
    }
}

extension DiskEntryState {
    fileprivate mutating func setPinned(_ isPinned: Bool) {
        if isPinned {
            flags.insert(.pinned)
        } else {
            flags.remove(.pinned)
        }
    }

    /// Whether the entry waits for a decision, so that its body must not be in its record yet.
    var awaitsDecision: Bool { succession == .waiting(forDecision: true) }
}
