import FoundationEssentials
import HTTPCaching
import HTTPTypes
import SystemPackage

// What the application does with entries without the origin.
extension Engine {
    /// Runs `body` with the store on a thread that may block.
    private func withStore<Value: Sendable>(
        _ body: @Sendable (DiskStore) throws(CacheError) -> Value
    ) async throws(CacheError) -> Value {
        let disk = disk
        return try await writers.run { () throws(CacheError) in try body(try disk.store()) }
    }

    func store(
        _ data: Data,
        for request: CacheRequest,
        contentType: String?
    ) async throws(CacheError) {
        let now = time.wallTime()
        var fields: HTTPFields = [.date: HTTPDate.format(now)]
        fields[.contentType] = contentType
        fields[.contentLength] = String(data.count)
        // Without a lifetime of the application's, it is fresh until somebody removes it.
        let lifetime = rules.applicationLifetime?.components.seconds ?? Int64(Int32.max)
        fields[.cacheControl] = "max-age=\(lifetime)"
        let head = StoredResponse(
            status: 200,
            fields: fields,
            requestTime: now,
            responseTime: now,
            origin: request.storedOrigin(),
            flags: .storedByApplication
        )
        memory.insert(MemoryEntry(head: head, body: data), forKey: request.key)
        guard configuration.directory != nil else { return }
        try await withStore { (store) throws(CacheError) in
            try data.withBytes { (bytes) throws(CacheError) in
                try store.store(
                    bytes,
                    for: request.key,
                    metadata: head.encoded(),
                    class: request.entryClass
                )
            }
        }
        recorder.didStore(request.key, .disk, bytes: Int64(data.count))
    }

    func remove(_ key: CacheKey) async throws(CacheError) -> Bool {
        let wasInMemory = memory.remove(key)
        guard configuration.directory != nil else { return wasInMemory }
        let wasOnDisk = try await withStore { (store) throws(CacheError) in
            try removeAll(of: key, from: store)
        }
        // A reader may have promoted it before it was gone from the disk.
        for further in furtherKeys(of: key) { memory.remove(further) }
        memory.remove(key)
        if wasInMemory || wasOnDisk {
            recorder.didRemove(key)
        }
        return wasInMemory || wasOnDisk
    }

    /// Removes what is held under a key, all its variants and parts.
    private func removeAll(
        of key: CacheKey,
        from store: DiskStore
    ) throws(CacheError) -> Bool {
        var wasHeld = try store.remove(key)
        for further in furtherKeys(of: key) where try store.remove(further) {
            wasHeld = true
        }
        return wasHeld
    }

    func removeAll() async throws(CacheError) {
        memory.removeAll()
        guard configuration.directory != nil else { return }
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

    func setPinned(_ isPinned: Bool, _ key: CacheKey) async throws(CacheError) -> Bool {
        try await withStore { (store) throws(CacheError) in
            try store.setPinned(isPinned, key)
        }
    }

    func setDiskLimit(_ bytes: Int64) async throws(CacheError) {
        try await withStore { (store) throws(CacheError) in try store.setLimit(bytes) }
    }

    func fileURL(for key: CacheKey) async throws(CacheError) -> URL? {
        let path = try await withStore { (store) throws(CacheError) in
            try store.bodyPath(for: key)
        }
        return path.map { URL(filePath: $0.string) }
    }

    func entries() async throws(CacheError) -> [EntrySummary] {
        let list = try await withStore { (store) throws(CacheError) in try store.list() }
        return list.map(EntrySummary.init)
    }

    func entry(for key: CacheKey) async throws(CacheError) -> EntrySummary? {
        try await withStore { (store) throws(CacheError) in
            try store.entry(for: key, isUse: false).map(EntrySummary.init)
        }
    }

    func usage() async throws(CacheError) -> DiskUsage {
        try await withStore { (store) throws(CacheError) in try store.usage() }
    }

    func verify(
        repair: Bool,
        report: @Sendable (DiskFinding) -> Void
    ) async throws(CacheError) -> DiskVerification {
        try await withStore { (store) throws(CacheError) in
            try store.verify(repair: repair, report: report)
        }
    }

    /// Runs `body` with what is kept of the past; nil where nothing is.
    func withHistory<Value: Sendable>(
        _ body: @Sendable (DirectoryHistory, DiskCore) throws(CacheError) -> Value
    ) async throws(CacheError) -> Value? {
        guard let history = recorder.history else { return nil }
        return try await withStore { (store) throws(CacheError) in try body(history, store.core) }
    }

    var storageTrouble: CacheError? {
        if let trouble = disk.trouble { return trouble }
        switch disk.openStore?.access {
        case .guest(let owner):
            let name = owner.map { "process \($0)" } ?? "another process"
            let directory = configuration.directory ?? ""
            return CacheError(.notOwner, "\(name) owns the cache directory \(directory)")
        case .readOnly(let error): return configuration.opensForReading ? nil : error
        case .owner, nil: return nil
        }
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
