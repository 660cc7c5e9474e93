import FoundationEssentials
import HTTPCaching
import SystemPackage

/// Both tiers as one: lookup, storing and removal by key.
final class Storage: Sendable {
    let memory: ResponseMemory
    let disk: DiskTier
    /// Whether there is a disk tier at all, in use or not.
    let hasDirectory: Bool
    let recorder: Recorder
    let rules: CacheRules
    let time: any TimeSource
    /// The threads on which lookups and reads may block on the disk.
    let io: IOExecutor
    /// The threads of downloads, and of everything that writes: a wait for a lock or for room here
    /// delays no lookup (invariant 12).
    let writers: IOExecutor
    /// Lets two tasks at once compute digests of bodies.
    ///
    /// Each takes a thread of ``writers`` for a slice, and two leave enough of them to downloads.
    let digesting = TaskLimit(2)
    private let configuration: MediaCache.Configuration
    /// Reads the directory through, so that the first write need not.
    private let indexing: Task<Void, Never>?
    /// Writes the history now and then.
    private let recording: Task<Void, Never>?

    /// Opens the tiers; a directory that cannot be used is no error here.
    ///
    /// - Throws: `.invalidArgument`.
    init(
        _ configuration: MediaCache.Configuration,
        parts: EngineParts,
        rules: CacheRules,
        io: IOExecutor,
        writers: IOExecutor,
        recorder: Recorder
    ) throws(CacheError) {
        self.configuration = configuration
        self.rules = rules
        self.io = io
        self.writers = writers
        self.recorder = recorder
        time = configuration.timeSource
        hasDirectory = configuration.path != nil
        memory = try ResponseMemory(configuration, events: recorder.events)
        disk = DiskTier(configuration, parts: parts, writers: writers, recorder: recorder)
        recording = recorder.history.map { [writers, time] history in
            Task { await history.writePeriodically(on: writers, time: time) }
        }
        let reads = configuration.readsDirectoryOnOpening
        indexing = (reads ? disk.openStore : nil).map { [writers] store in
            Task(executorPreference: writers) {
                do throws(CacheError) {
                    try store.loadIndex { Task.isCancelled }
                } catch {
                    // The first write needs the index as well, tries again, and reports.
                }
            }
        }
        if hasDirectory, let storageError = disk.storageError {
            recorder.didFailToOpen(storageError)
        }
    }

    deinit { stop() }

    /// Ends background work; calls still work.
    func stop() {
        indexing?.cancel()
        recording?.cancel()
    }

    /// Waits for the end of the background work that ``stop()`` has stopped and that must not
    /// outlive the directory.
    func awaitStop() async {
        await indexing?.value
    }

    // MARK: Lookup

    /// The entry under a key, looked up on this thread if that needs no disk.
    ///
    /// An error of the disk is a miss: the origin may still answer (invariant 9).
    func entry(for key: CacheKey, isUse: Bool) async throws(CacheError) -> DiskEntry? {
        if let store = disk.openStore,
            case .ready(let entry) = store.entryWithoutBlocking(for: key, isUse: isUse)
        {
            return entry
        }
        guard hasDirectory else { return nil }
        return await io.run { [self] in
            do throws(CacheError) {
                return try disk.store().entry(for: key, isUse: isUse)
            } catch {
                recorder.didFailToLookUp(key, error: error)
                return nil
            }
        }
    }

    /// The entry under a key if it is open, for a use; never touches the disk.
    func entryAtHand(_ key: CacheKey) -> DiskEntry? {
        guard let store = disk.openStore,
            case .ready(let entry?) = store.entryWithoutBlocking(for: key)
        else { return nil }
        return entry
    }

    /// Whether it is known without the disk that nothing is stored under a key.
    func isKnownAbsent(_ key: CacheKey) -> Bool {
        guard hasDirectory else { return true }
        guard let store = disk.openStore,
            case .ready(nil) = store.entryWithoutBlocking(for: key, isUse: false)
        else { return false }
        return true
    }

    /// The error that keeps the directory from normal use; nil if there is none.
    var storageError: CacheError? {
        if let storageError = disk.storageError { return storageError }
        switch disk.openStore?.access {
        case .guest(let owner):
            let directory = configuration.path ?? ""
            return CacheError(.notOwner, "\(owner.name) owns the cache directory \(directory)")
        case .readOnly(let error): return configuration.opensForReading ? nil : error
        case .owner, nil: return nil
        }
    }

    // MARK: Memory

    /// Puts a whole body into the memory tier, unless its entry was replaced or removed meanwhile.
    func promote(
        _ bytes: Data,
        head: StoredResponse,
        key: CacheKey,
        generation: UInt64?,
        isSuperseded: () -> Bool
    ) {
        guard !isSuperseded() else { return }
        let entry = MemoryEntry(head: head, body: bytes, generation: generation)
        memory.insert(entry, forKey: key)
        // What replaces or removes does it on disk first, so one of the two sees the other.
        if isSuperseded() { memory.remove(key) }
    }
}
