import HTTPCaching

// Removal and invalidation.
extension Storage {
    /// Quarantines an entry whose body fails its digest, or removes it if that fails.
    ///
    /// - Returns: whether lookups no longer find it.
    @discardableResult
    func quarantine(_ entry: DiskEntry, of key: CacheKey) -> Bool {
        memory.remove(key)
        defer {
            memory.remove(key)
            memory.remove(entry.key)
        }
        do throws(CacheError) {
            _ = try disk.openStore?.quarantine(entry)
            return true
        } catch {
            recorder.didFailToLookUp(entry.key, error: error)
            return false
        }
    }

    /// Removes the response stored under a key because the origin's response must not be stored.
    func forget(_ key: CacheKey, because cause: DiskRemoval.Cause, sparesPinned: Bool = false) {
        memory.remove(key)
        // Once more: it may have been promoted before the file was gone.
        defer { memory.remove(key) }
        guard let store = disk.openStore else { return }
        do throws(CacheError) {
            _ = try store.remove(key, because: cause, sparesPinned: sparesPinned)
        } catch {
            recorder.didFailToLookUp(key, error: error)
        }
    }

    /// Marks the responses stored under a key for validation before their next use.
    func invalidate(_ key: CacheKey) async {
        let keys = [key] + key.variants
        for key in keys { memory.remove(key) }
        let onDisk = keys.filter { !isKnownAbsent($0) }
        guard !onDisk.isEmpty else { return }
        await writers.run { [self] in
            for key in onDisk { markInvalid(key) }
        }
        // It may have been promoted before the mark was there.
        for key in onDisk { memory.remove(key) }
    }

    private func markInvalid(_ key: CacheKey) {
        do throws(CacheError) {
            guard let entry = try disk.openStore?.entry(for: key, isUse: false),
                var head = StoredResponse(encoded: entry.metadata)
            else { return }
            head.flags.insert(.invalidated)
            try entry.updateMetadata(head.encoded())
        } catch {
            recorder.didFailToLookUp(key, error: error)
        }
    }

    /// Replaces the head of a stored response, in both tiers.
    func replaceHead(of stored: StoredEntry, by head: StoredResponse) async {
        memory.remove(stored.key)
        guard case .disk(let entry) = stored.body else {
            await updateOnDisk(stored, with: head)
            return
        }
        await writers.run { [self] in update(entry, with: head) }
        memory.remove(stored.key)
    }

    private func updateOnDisk(_ stored: StoredEntry, with head: StoredResponse) async {
        guard let store = disk.openStore else { return }
        await writers.run { [self] in
            do throws(CacheError) {
                guard let entry = try store.entry(for: stored.key, isUse: false),
                    // Another response may have taken the name meanwhile.
                    StoredResponse(encoded: entry.metadata) == stored.head
                else { return }
                update(entry, with: head)
            } catch {
                recorder.didFailToLookUp(stored.key, error: error)
            }
        }
    }

    private func update(_ entry: DiskEntry, with head: StoredResponse) {
        do throws(CacheError) {
            try entry.updateMetadata(head.encoded())
        } catch {
            recorder.didFailToLookUp(entry.key, error: error)
        }
    }
}
