import SystemPackage

// The allocation of files is charged on the index slot of their name; that of an entry without a
// name on the entry itself.
extension DiskStore {
    /// Enters a published entry into index and ledger; `record` is the status of its record.
    func publish(
        _ lock: inout NameLock,
        of entry: DiskEntry,
        record: FileStatus,
        bodyBytes: Int64,
        because cause: DiskRemoval.Cause = .replaced,
        keepsOldBody: Bool = false
    ) {
        let (flags, detached, keepsRecord) = entry.state.withLock { state in
            defer {
                state.detachedBytes = 0
                state.hasRetiredRecord = false
            }
            return (state.flags, state.detachedBytes, state.hasRetiredRecord)
        }
        let kept = state.withLock { state in
            let known = state.entries.charged(entry.name, generation: entry.generation)
            let kept = keepsRecord ? known?.recordBytes ?? 0 : 0
            state.space.charge(kept)
            return kept
        }
        entry.state.withLock { $0.retiredBytes += kept }
        let slot = DiskIndex.Slot(
            name: entry.name,
            generation: entry.generation,
            recordBytes: chargedRecord(record, of: entry),
            bodyBytes: bodyBytes,
            hasBody: !flags.contains(.inline),
            lastUse: useTime(),
            queue: flags.queue
        )
        replace(&lock, with: entry, slot: slot, because: cause, keepsOldBody: keepsOldBody)
        // The slot has what was detached, and the entry what the slot had. Only now: what had the
        // name may have taken long to remove, and what is there is charged all the while.
        state.withLock { $0.space.charge(-detached) }
    }

    func bodyBytes(of entry: DiskEntry) throws(FileSystemError) -> Int64 {
        let (body, isInline) = entry.state.withLock { ($0.body, $0.isInline) }
        guard let body, !isInline else { return 0 }
        let status = try fileSystem.status(of: body)
        entry.state.withLock { $0.verification = status.verification }
        return chargedBody(status, of: entry)
    }

    /// Charges the present allocation of a published entry's files.
    func charge(
        _ lock: borrowing NameLock,
        for entry: DiskEntry,
        record: OpenFile
    ) throws(FileSystemError) {
        let bodyBytes = try bodyBytes(of: entry)
        let recordBytes = chargedRecord(try fileSystem.status(of: record), of: entry)
        charge(lock, for: entry, recordBytes: recordBytes, bodyBytes: bodyBytes)
    }

    func charge(
        _ lock: borrowing NameLock,
        for entry: DiskEntry,
        recordBytes: Int64,
        bodyBytes: Int64
    ) {
        let isInline = entry.state.withLock { $0.isInline }
        state.withLock { state in
            let delta = state.entries.update(entry.name, generation: entry.generation) {
                slot in
                slot.recordBytes = recordBytes
                slot.bodyBytes = bodyBytes
                slot.hasBody = slot.hasBody || !isInline
            }
            state.space.charge(delta ?? 0)
        }
    }

    /// Charges the body of an entry without a name on the entry itself.
    func chargeDetached(_ lock: borrowing NameLock, for entry: DiskEntry, bytes: Int64) {
        let delta = entry.state.withLock { state in
            defer { state.detachedBytes = bytes }
            return bytes - state.detachedBytes
        }
        releaseDetached(-delta, of: entry.name)
    }

    /// What a failed write left is allocated all the same; where the disk does not tell how much,
    /// that is as much as it can be, and looked at once more later.
    func chargeAfterFailure(_ entry: DiskEntry, wrote count: Int) {
        withLock(of: entry.name) { lock in
            let (record, isPublished) = entry.state.withLock {
                ($0.record, $0.isPublished && !$0.isDetached)
            }
            let charged = state.withLock {
                $0.entries.charged(entry.name, generation: entry.generation)
            }
            guard isPublished, let slot = charged else {
                let known = entry.state.withLock { $0.detachedBytes }
                let bytes = bodyBytes(of: entry, atMost: count, above: known)
                return chargeDetached(lock, for: entry, bytes: bytes)
            }
            let body = bodyBytes(of: entry, atMost: count, above: slot.bodyBytes)
            var recordBytes = slot.recordBytes + Self.cost(8192)
            do throws(FileSystemError) {
                recordBytes = chargedRecord(try recordStatus(of: entry, record), of: entry)
            } catch {
                didNotSettle(entry)
            }
            charge(lock, for: entry, recordBytes: recordBytes, bodyBytes: body)
        }
    }

    private func bodyBytes(of entry: DiskEntry, atMost count: Int, above known: Int64) -> Int64 {
        do throws(FileSystemError) {
            return try bodyBytes(of: entry)
        } catch {
            didNotSettle(entry)
            return known + Self.cost(count)
        }
    }

    private func recordStatus(
        of entry: DiskEntry,
        _ record: OpenFile?
    ) throws(FileSystemError) -> FileStatus {
        if let record { return try fileSystem.status(of: record) }
        return try fileSystem.status(of: entry.name.record, in: entries)
    }

    private func didNotSettle(_ entry: DiskEntry) {
        entry.state.withLock { $0.isUnsettled = true }
        count(\.housekeepingErrors)
    }
}
