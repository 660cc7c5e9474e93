import FoundationEssentials
import HTTPCaching
import HTTPTypes

// Operations of the application on entries, without the origin.
extension Storage {
    /// Runs `body` with the store on a thread that may block.
    func withStore<Value: Sendable>(
        _ body: @Sendable (DiskStore) throws(CacheError) -> Value
    ) async throws(CacheError) -> Value {
        let disk = disk
        return try await writers.run { () throws(CacheError) in try body(try disk.store()) }
    }

    /// Stores bytes of the application as the whole response to a request, in both tiers.
    func store(
        _ data: Data,
        for request: CacheRequest,
        contentType: String?
    ) async throws(CacheError) {
        let head = head(of: data, for: request, contentType: contentType)
        let keep = { [memory] in
            memory.insert(MemoryEntry(head: head, body: data), forKey: request.key)
        }
        // Of a long one only a part is on disk while it is written.
        let isShort = Int64(data.count) <= BlockTable.blockSize
        if !hasDirectory || !isShort { keep() }
        guard hasDirectory else { return }
        let entry: DiskEntry
        do throws(CacheError) {
            entry = try await withStore { (store) throws(CacheError) in
                try data.withBytes { (bytes) throws(CacheError) in
                    try store.store(
                        bytes,
                        for: request.key,
                        metadata: head.encoded(),
                        class: request.entryClass
                    )
                }
            }
        } catch {
            keep()
            throw error
        }
        // Of a short one only now: who finds the bytes can remove them, and they do not come back.
        promote(data, head: head, key: request.key, generation: entry.generation) {
            entry.isSuperseded
        }
        recorder.didStore(request.key, in: .disk, bytes: Int64(data.count))
    }

    private func head(
        of data: Data,
        for request: CacheRequest,
        contentType: String?
    ) -> StoredResponse {
        let now = time.wallTime()
        var fields: HTTPFields = [.date: HTTPDate.format(now)]
        fields[.contentType] = contentType
        fields[.contentLength] = String(data.count)
        // Without a lifetime of the application's, it is fresh until it is removed.
        let lifetime = rules.applicationLifetime?.components.seconds ?? Int64(Int32.max)
        fields[.cacheControl] = "max-age=\(lifetime)"
        return StoredResponse(
            status: 200,
            fields: fields,
            requestTime: now,
            responseTime: now,
            origin: request.storedOrigin(),
            flags: .storedByApplication
        )
    }

    /// Pins the entry that answers a request that asks for a pin, and the entry stored under its
    /// key by then; only new entries are created pinned.
    ///
    /// A failure is counted and reported as an event; the bytes are delivered all the same.
    ///
    /// - Parameters:
    ///   - entry: the entry that answers; nil if the response was not stored. The stored entry
    ///     stays then and is pinned.
    ///   - request: the request that may ask for a pin.
    /// - Returns: the error, if it cannot be pinned.
    @discardableResult
    func keepPin(_ entry: DiskEntry?, for request: CacheRequest) async -> CacheError? {
        guard request.isPinned, request.isCacheable, hasDirectory else { return nil }
        do throws(CacheError) {
            try await withStore { (store) throws(CacheError) in
                // Of another transfer, it may have no name yet.
                if let entry, !entry.isPinned { try entry.setPinned(true) }
                _ = try store.setPinned(true, of: request.key)
            }
            return nil
        } catch {
            recorder.didFailToStore(request.key, target: request.target, error: error)
            return error
        }
    }

    func remove(_ key: CacheKey) async throws(CacheError) -> Bool {
        let wasInMemory = memory.remove(key)
        guard hasDirectory else { return wasInMemory }
        let wasOnDisk = try await withStore { (store) throws(CacheError) in
            try removeAll(of: key, from: store)
        }
        // A reader may have promoted it before it was gone from the disk.
        for further in key.variants { memory.remove(further) }
        memory.remove(key)
        if wasInMemory || wasOnDisk {
            recorder.didRemove(key)
        }
        return wasInMemory || wasOnDisk
    }

    /// Removes the responses stored under a key, with all variants and parts.
    ///
    /// Each of these is removed in one step, but not all of them together: while this runs a
    /// lookup may find one of them, the transfer of another request may store a new one, which
    /// stays, and a crash or an error leaves those that were not removed yet. The primary one is
    /// the first to go. A part that is left is found at once, a variant once a primary one is
    /// stored again.
    private func removeAll(
        of key: CacheKey,
        from store: DiskStore
    ) throws(CacheError) -> Bool {
        var wasStored = try store.remove(key)
        for further in key.variants where try store.remove(further) {
            wasStored = true
        }
        return wasStored
    }

    func removeAll() async throws(CacheError) {
        memory.removeAll()
        guard hasDirectory else { return }
        try await withStore { (store) throws(CacheError) in try store.removeAll() }
        memory.removeAll()
        recorder.didRemoveAll()
    }

    func trim(to bytes: Int64) async throws(CacheError) -> Int64 {
        guard bytes >= 0 else {
            throw CacheError(.invalidArgument, "cannot trim to \(bytes) bytes")
        }
        return try await withStore { (store) throws(CacheError) in try store.trim(to: bytes) }
    }

    func entries() async throws(CacheError) -> [EntrySummary] {
        try await withStore { [recorder] (store) throws(CacheError) in
            try store.list { recorder.didFailToList($0) }.map(EntrySummary.init)
        }
    }

    /// The entry stored under a key; the lookup does not count as a use.
    func summary(of key: CacheKey) async throws(CacheError) -> EntrySummary? {
        try await withStore { (store) throws(CacheError) in
            try store.entry(for: key, isUse: false).map(EntrySummary.init)
        }
    }

    /// Runs `body` with the history; nil if none is kept.
    func withHistory<Value: Sendable>(
        _ body: @Sendable (DirectoryHistory, DiskStore) throws(CacheError) -> Value
    ) async throws(CacheError) -> Value? {
        guard let history = recorder.history else { return nil }
        return try await withStore { (store) throws(CacheError) in try body(history, store) }
    }
}

extension CacheRequest {
    /// The fields of the request stored with its response.
    func storedOrigin(finalTarget: TargetURI? = nil) -> StoredResponse.Origin {
        StoredResponse.Origin(
            method: method.rawValue,
            url: target.string,
            finalURL: finalTarget == target ? nil : finalTarget?.string,
            explicitKey: explicitKey
        )
    }

    /// The class of the entry in the disk tier.
    var entryClass: DiskEntryClass {
        var result: DiskEntryClass = []
        if isPinned { result.insert(.pinned) }
        if isPrefetch { result.insert(.prefetched) }
        return result
    }
}

extension Data {
    fileprivate func withBytes<Failure: Error>(
        _ body: (UnsafeRawBufferPointer) throws(Failure) -> Void
    ) throws(Failure) {
        let result = withUnsafeBytes { bytes -> Result<Void, Failure> in
            do throws(Failure) {
                return .success(try body(bytes))
            } catch {
                return .failure(error)
            }
        }
        try result.get()
    }
}
