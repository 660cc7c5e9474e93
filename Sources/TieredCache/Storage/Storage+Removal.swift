import HTTPCaching

// What must not be found any more.
extension Storage {
    /// Sets an entry aside whose body is not what was promised, or drops it where that cannot be.
    func quarantine(_ entry: DiskEntry, of key: CacheKey) {
        memory.remove(key)
        do throws(CacheError) {
            _ = try disk.openStore?.quarantine(entry)
        } catch {
            recorder.didFailToLookUp(entry.key, error)
        }
        memory.remove(key)
        memory.remove(entry.key)
    }

    /// Drops what is stored under a key because the origin's answer must not be stored.
    func forget(_ key: CacheKey, because cause: DiskRemoval.Cause, sparesPinned: Bool = false) {
        memory.remove(key)
        defer { memory.remove(key) }
        guard let store = disk.openStore else { return }
        do throws(CacheError) {
            _ = try store.remove(key, because: cause, sparesPinned: sparesPinned)
        } catch {
            recorder.didFailToLookUp(key, error)
        }
    }

    /// Has all that is stored under a key validated before its next use.
    func invalidate(_ key: CacheKey) async {
        let keys = [key] + key.further
        for key in keys { memory.remove(key) }
        guard disk.openStore != nil else { return }
        await writers.run { [self] in
            for key in keys { markInvalid(key) }
        }
        // It may have been promoted before the mark was there.
        for key in keys { memory.remove(key) }
    }

    private func markInvalid(_ key: CacheKey) {
        do throws(CacheError) {
            guard let entry = try disk.openStore?.entry(for: key, isUse: false),
                var head = StoredResponse(encoded: entry.metadata)
            else { return }
            head.flags.insert(.invalidated)
            try entry.updateMetadata(head.encoded())
        } catch {
            recorder.didFailToLookUp(key, error)
        }
    }

    /// Gives what is stored another head, in both tiers.
    func replaceHead(of stored: StoredEntry, by head: StoredResponse) async {
        memory.remove(stored.key)
        guard case .disk(let entry) = stored.body else {
            await updateOnDisk(stored, head)
            return
        }
        await writers.run { [self] in update(entry, head) }
        memory.remove(stored.key)
    }

    private func updateOnDisk(_ stored: StoredEntry, _ head: StoredResponse) async {
        guard let store = disk.openStore else { return }
        await writers.run { [self] in
            do throws(CacheError) {
                guard let entry = try store.entry(for: stored.key, isUse: false),
                    StoredResponse(encoded: entry.metadata) == stored.head
                else { return }
                update(entry, head)
            } catch {
                recorder.didFailToLookUp(stored.key, error)
            }
        }
    }

    private func update(_ entry: DiskEntry, _ head: StoredResponse) {
        do throws(CacheError) {
            try entry.updateMetadata(head.encoded())
        } catch {
            recorder.didFailToLookUp(entry.key, error)
        }
    }
}
