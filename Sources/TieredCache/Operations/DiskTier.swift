import SystemPackage

/// The disk tier as the engine meets it: usable, or not for now (invariant 9).
///
/// States: `open` → `closed`; `unavailable` → `open` (a later attempt worked) or `closed`. An
/// attempt to open again is made at most every ten seconds, by whoever needs the disk next.
final class DiskTier: Sendable {
    private enum State {
        case open(DiskStore)
        case unavailable(CacheError, retryAt: MonotonicTime)
        case closed
    }

    private static let retryInterval = Duration.seconds(10)

    private let state: Guarded<State>
    private let time: any TimeSource
    private let makeStore: @Sendable () throws(CacheError) -> DiskStore

    /// Opens a configuration's directory; that it cannot be used is not an error here.
    convenience init(
        _ configuration: Configuration,
        fileSystem: any FileSystem,
        events: EventHub,
        counters: StatisticsCounters
    ) {
        self.init(time: configuration.timeSource) { () throws(CacheError) in
            guard let directory = configuration.directory else {
                throw CacheError(.localStorage, "this cache has no directory")
            }
            return try DiskStore(
                configuration.diskOptions(directory, events: events, counters: counters),
                fileSystem: fileSystem,
                timeSource: configuration.timeSource
            )
        }
    }

    /// Opens a store; that it cannot be opened is not an error here.
    init(
        time: any TimeSource,
        makeStore: @escaping @Sendable () throws(CacheError) -> DiskStore
    ) {
        self.time = time
        self.makeStore = makeStore
        state = Guarded(Self.attempt(makeStore, time: time))
    }

    /// The store if it is open now; never touches the disk.
    var openStore: DiskStore? {
        state.withLock { state in
            guard case .open(let store) = state else { return nil }
            return store
        }
    }

    /// Why the directory cannot be used at present; nil if it can.
    var trouble: CacheError? {
        state.withLock { state in
            guard case .unavailable(let error, _) = state else { return nil }
            return error
        }
    }

    /// The store; tries to open it again if its time has come, so this may block on the disk.
    ///
    /// - Throws: why it cannot be used.
    func store() throws(CacheError) -> DiskStore {
        let now = time.monotonicTime()
        let known: Result<DiskStore, CacheError>? = state.withLock { state in
            switch state {
            case .open(let store):
                return .success(store)
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

    /// Lets go of the store; later calls throw `.shutDown`.
    ///
    /// The directory is given up once what is being written is written; who reads an entry reads on.
    func close() {
        let last = state.withLock { state in
            defer { state = .closed }
            return state
        }
        // Not left to the last reference: a task that has just ended may still hold one.
        if case .open(let store) = last { store.close() }
    }

    private func reopen() throws(CacheError) -> DiskStore {
        let attempt = Self.attempt(makeStore, time: time)
        let surplus = state.withLock { state -> State? in
            guard case .unavailable = state else { return attempt }
            state = attempt
            return nil
        }
        if case .open(let store) = surplus { store.close() }
        return try result(of: surplus == nil ? attempt : state.withLock { $0 })
    }

    private func result(of state: State) throws(CacheError) -> DiskStore {
        switch state {
        case .open(let store): return store
        case .unavailable(let error, _): throw error
        case .closed: throw CacheError(.shutDown, "the cache has been shut down")
        }
    }

    private static func attempt(
        _ makeStore: () throws(CacheError) -> DiskStore,
        time: any TimeSource
    ) -> State {
        do throws(CacheError) {
            return .open(try makeStore())
        } catch {
            return .unavailable(error, retryAt: time.monotonicTime().advanced(by: retryInterval))
        }
    }
}

extension Configuration {
    fileprivate func diskOptions(
        _ directory: FilePath,
        events: EventHub,
        counters: StatisticsCounters
    ) -> DiskStoreOptions {
        var options = DiskStoreOptions(root: directory, limit: diskLimit)
        options.minimumFree = minimumFreeDisk
        // Whoever chose a limit gets it; the default must not fill a small volume.
        if chosenDiskLimit == nil { options.maximumVolumePercentage = 10 }
        options.didEvict = { key, _, bytes in
            counters.add(to: .entriesEvicted)
            counters.add(bytes, to: .bytesEvicted)
            events.post(CacheEvent(key: key, .evicted(.disk, .size, bytes: bytes)))
        }
        return options
    }
}
