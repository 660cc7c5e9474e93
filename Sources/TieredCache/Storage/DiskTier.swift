import Logging
import SystemPackage

/// The disk tier as the engine sees it: usable, or not for now (invariant 9).
///
/// States: `open` → `closed`; `unavailable` → `open` (a later attempt worked) or `closed`.
///
/// ``store()`` opens the directory again, at most every ten seconds, if one of these is so:
///
/// - the directory could not be opened;
/// - the open store cannot write: it is a guest, was opened for reading, or could not write LOCK,
///   for want of room for example;
/// - the directory of the open store was removed.
///
/// An open store serves until a better one takes its place. Without one, calls throw the error of
/// the last attempt.
final class DiskTier: Sendable {
    fileprivate enum State {
        case open(DiskStore, retryAt: MonotonicTime)
        case unavailable(CacheError, retryAt: MonotonicTime)
        case closed
    }

    private static let retryInterval = Duration.seconds(10)

    private let state: Guarded<State>
    /// Called when this process has begun to own the directory, or was seen to own it no more.
    private let ownershipDidChange = Guarded<(@Sendable () -> Void)?>(nil)
    private let time: any TimeSource
    private let makeStore: @Sendable () throws(CacheError) -> DiskStore

    /// Opens a configuration's directory.
    ///
    /// A directory that cannot be used is no error here. `writers` run what lookups leave to be
    /// written.
    convenience init(
        _ configuration: MediaCache.Configuration,
        parts: EngineParts,
        writers: IOExecutor,
        recorder: Recorder
    ) {
        self.init(time: configuration.timeSource) { () throws(CacheError) in
            guard let directory = configuration.path else {
                throw CacheError(
                    .localStorage,
                    "this cache has no directory; name one, or set XDG_CACHE_HOME or HOME"
                )
            }
            var options = configuration.diskOptions(for: directory, recorder: recorder)
            options.runLater = { work in Task(executorPreference: writers) { work() } }
            parts.adjustDisk(&options)
            let store = try DiskStore(
                options,
                fileSystem: parts.fileSystem,
                timeSource: configuration.timeSource
            )
            recorder.history?.begin(store)
            return store
        }
    }

    /// Opens a store.
    ///
    /// A failure is no error here. Not inlined, as what looks at a state below.
    @inline(never)
    init(
        time: any TimeSource,
        makeStore: @escaping @Sendable () throws(CacheError) -> DiskStore
    ) {
        self.time = time
        self.makeStore = makeStore
        let first = LockChecker.withBlocking("a cache is opened on a thread of its caller's") {
            Self.attempt(makeStore, time: time)
        }
        // An owner that loses its directory has not tried to open it again yet.
        let isOwner = first.store?.access.canWrite == true
        state = Guarded(isOwner ? first.retrying(at: time.monotonicTime()) : first)
    }

    deinit {
        // The history of the directory holds the store until that is closed.
        let store = state.withLock { $0.store }
        LockChecker.withBlocking("who gives up a cache without shutting it down waits for that") {
            store?.close()
        }
    }

    // What looks at a state is not inlined: it tests bits of the word that no case sets, and
    // `scripts/valgrind.supp` has to name the functions in which that is no error.

    /// The store if it is open now and its directory is there; never touches the disk.
    var openStore: DiskStore? {
        @inline(never) get {
            state.withLock { state in
                guard let store = state.store, !store.isLost else { return nil }
                return store
            }
        }
    }

    /// Calls `action` whenever this process has begun to own the directory or owns it no more, and
    /// at once if it owns it.
    ///
    /// - Parameter action: called on any thread, perhaps twice; must not wait.
    func whenOwnershipChanges(_ action: @escaping @Sendable () -> Void) {
        ownershipDidChange.withLock { $0 = action }
        if openStore?.access.canWrite == true { action() }
    }

    /// Whether ``close()`` was called.
    var isClosed: Bool {
        @inline(never) get {
            state.withLock { state in
                if case .closed = state { true } else { false }
            }
        }
    }

    /// Why the directory cannot be used at present; nil if it can.
    var storageError: CacheError? {
        @inline(never) get {
            state.withLock { state in
                switch state {
                case .open(let store, _): store.isLost ? store.lostDirectory : nil
                case .unavailable(let error, _): error
                case .closed: nil
                }
            }
        }
    }

    /// The store; tries to open it again if its time has come, so this may block on the disk.
    ///
    /// - Throws: why it cannot be used.
    func store() throws(CacheError) -> DiskStore {
        let now = time.monotonicTime()
        state.withLock { $0.store }?.look()
        let known: Result<DiskStore, CacheError>? = state.withLock { state in
            switch state {
            case .open(let store, let retryAt):
                guard store.wantsAnother, now >= retryAt else { return .success(store) }
                // Others use what there is while this caller tries.
                state = .open(store, retryAt: now.advanced(by: Self.retryInterval))
                return nil
            case .closed:
                return .failure(CacheError(.shutDown, "the cache has been shut down"))
            case .unavailable(let error, let retryAt):
                guard now >= retryAt else { return .failure(error) }
                // Others go on without the disk while this caller tries.
                state = .unavailable(error, retryAt: now.advanced(by: Self.retryInterval))
                return nil
            }
        }
        if let known { return try known.get() }
        return try reopen()
    }

    /// Closes the store; later calls throw `.shutDown`.
    ///
    /// The directory is released after the writes under way; leases on entries stay readable.
    ///
    /// - Returns: what is completed when it is released; nil without a store.
    @discardableResult
    @inline(never) func close() -> Latch<Void>? {
        let last = state.withLock { state in
            defer { state = .closed }
            return state
        }
        // Not left to the last reference: a task that has just ended may still hold one.
        last.store?.close()
        return last.store?.lock.released
    }

    private func reopen() throws(CacheError) -> DiskStore {
        let lost = state.withLock { $0.store }.flatMap { $0.isLost ? $0 : nil }
        if let lost {
            lost.close()
            // Its own writes under way would be unknown to the next owner: they end soon.
            guard lost.lock.isClosed else {
                let now = time.monotonicTime()
                state.withLock { if $0.store === lost { $0 = $0.retrying(at: now) } }
                return lost
            }
        }
        let attempt = Self.attempt(makeStore, time: time)
        let (chosen, surplus) = state.withLock { state -> (State, State) in
            guard attempt.isBetter(than: state) else { return (state, attempt) }
            defer { state = attempt }
            return (attempt, state)
        }
        surplus.store?.close()
        // No owner opens its directory again unless it has lost it.
        if lost != nil || chosen.store?.access.canWrite == true {
            ownershipDidChange.withLock { $0 }?()
        }
        return try result(of: chosen)
    }

    private func result(of state: State) throws(CacheError) -> DiskStore {
        switch state {
        case .open(let store, _): return store
        case .unavailable(let error, _): throw error
        case .closed: throw CacheError(.shutDown, "the cache has been shut down")
        }
    }

    private static func attempt(
        _ makeStore: () throws(CacheError) -> DiskStore,
        time: any TimeSource
    ) -> State {
        let retryAt = time.monotonicTime().advanced(by: retryInterval)
        do throws(CacheError) {
            return .open(try makeStore(), retryAt: retryAt)
        } catch {
            return .unavailable(error, retryAt: retryAt)
        }
    }
}

extension DiskTier.State {
    fileprivate var store: DiskStore? {
        guard case .open(let store, _) = self else { return nil }
        return store
    }

    /// The same, with another time for the next attempt.
    fileprivate func retrying(at time: MonotonicTime) -> Self {
        switch self {
        case .open(let store, _): .open(store, retryAt: time)
        case .unavailable(let error, _): .unavailable(error, retryAt: time)
        case .closed: .closed
        }
    }

    /// Whether the result of this attempt replaces the one before it.
    fileprivate func isBetter(than before: Self) -> Bool {
        switch (before, self) {
        case (.closed, _): false
        case (.unavailable, _): true
        case (.open(let old, _), .open(let new, _)):
            old.isLost || !old.access.canWrite && new.access.canWrite
        case (.open, _): false
        }
    }
}

extension DiskStore {
    /// Whether it is worth to open the directory again.
    fileprivate var wantsAnother: Bool { !access.canWrite || isLost }
}

extension MediaCache.Configuration {
    fileprivate func diskOptions(for directory: FilePath, recorder: Recorder) -> DiskStoreOptions {
        var options = DiskStoreOptions(root: directory, limit: diskLimit)
        if let maximumIdleFiles { options.maximumOpenEntries = maximumIdleFiles }
        options.minimumFree = minimumFreeDisk
        options.isReader = opensForReading
        // A limit that was chosen counts; the default must not fill a small volume.
        if chosenDiskLimit == nil { options.maximumVolumePercentage = 10 }
        options.didLeave = { recorder.didLeave($0) }
        options.willClose = { recorder.history?.end($0) }
        return options
    }
}
