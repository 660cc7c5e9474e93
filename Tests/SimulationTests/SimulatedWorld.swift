#if os(Linux)
import SystemPackage
import TieredCacheTesting

@_spi(Benchmarks) @testable import TieredCache

/// One life of the program that has the cache.
final class SimulatedProcess: Sendable {
    let number: Int
    let cache: MediaCache
    let files: SimulatedFileSystem

    init(number: Int, cache: MediaCache, files: SimulatedFileSystem) {
        self.number = number
        self.cache = cache
        self.files = files
    }
}

/// Disk, origin and process of a simulation, and the model that judges them.
final class SimulatedWorld: Sendable {
    private struct State {
        var disk: InMemoryFileSystem
        var process: SimulatedProcess?
        var processes = 0
        /// The views of clients that have closed the cache and may still read from it.
        var earlier: [SimulatedFileSystem] = []
        var isTurning = false
        var model: SimulationModel
    }

    let scheduler: SimulationScheduler
    let profile: SimulationProfile
    let origin: SimulatedOrigin
    private let state: Guarded<State>
    private let jitter: SharedDie

    init(_ scheduler: SimulationScheduler, _ profile: SimulationProfile, die: inout Die) {
        self.scheduler = scheduler
        self.profile = profile
        let model = SimulationModel(urls: profile.urls, limit: profile.diskLimit)
        let disk = InMemoryFileSystem(
            time: scheduler.time,
            remembersUnsynced: profile.crashes
        )
        state = Guarded(State(disk: disk, model: model))
        jitter = SharedDie(die.split())
        origin = SimulatedOrigin(profile, die: die.split())
    }

    var disk: InMemoryFileSystem { state.withLock { $0.disk } }
    /// The cache as clients may use it; nil while a process ends or begins.
    var process: SimulatedProcess? { state.withLock { $0.isTurning ? nil : $0.process } }
    var model: SimulationModel { state.withLock { $0.model } }

    func change<Value: Sendable>(_ body: (inout SimulationModel) -> Value) -> Value {
        state.withLock { body(&$0.model) }
    }

    func fail(_ message: String) { scheduler.fail(message) }

    // MARK: Processes

    /// Opens a cache on the disk, as a new process does.
    func open() {
        let (disk, number, limit) = state.withLock { state in
            state.processes += 1
            return (state.disk, state.processes, state.model.space.limit)
        }
        let files = SimulatedFileSystem(disk, scheduler: scheduler, warmth: profile.warmth) {
            [weak self] in self?.checkSpace(of: disk)
        }
        let transport = ScriptedTransport(time: scheduler.time) { [origin, scheduler] request, _ in
            let response = origin.answer(request)
            scheduler.note("origin: \(request.told) -> \(response.told)")
            return response
        }
        do {
            let cache = try MediaCache(
                configuration(limit, transport),
                parts: parts(files, number)
            )
            let process = SimulatedProcess(number: number, cache: cache, files: files)
            state.withLock { $0.process = process }
        } catch {
            fail("the cache cannot be opened: \(error)")
        }
    }

    private func configuration(
        _ limit: Int64,
        _ transport: any Transport
    ) -> MediaCache.Configuration {
        var configuration = MediaCache.Configuration(path: "/cache")
        configuration.memoryLimit = profile.memoryLimit
        configuration.diskLimit = limit
        configuration.minimumFreeDisk = 0
        configuration.maximumDownloads = 3
        configuration.retries = 2
        configuration.networkMonitor = nil
        configuration.respondsToMemoryPressure = false
        configuration.keepsHistory = false
        configuration.transport = transport
        configuration.timeSource = scheduler.time
        return configuration
    }

    private func parts(_ files: SimulatedFileSystem, _ number: Int) -> EngineParts {
        var parts = EngineParts()
        parts.fileSystem = files
        parts.makeExecutor = { [scheduler] name in
            let lane: SimulationLane = name == "tc-write" ? .writing : .io
            return IOExecutor { job, executor in
                scheduler.enqueue(.ioJob(job, executor), in: lane)
            }
        }
        parts.jitter = { [jitter] in Double(jitter.roll(1000)) / 1000 }
        parts.adjustDisk = { [profile, scheduler] options in
            options.maximumOpenEntries = profile.maximumOpenEntries
            options.maximumHeadMemory = profile.maximumHeadMemory
            options.inlineLimit = profile.inlineLimit
            options.hugeBody = profile.hugeBody
            options.headLength = profile.headLength
            options.minimumSnapshotEntries = profile.minimumSnapshotEntries
            options.generationSeed = UInt64(number)
            options.lockWaiter = SimulatedLockWaiter(scheduler: scheduler)
            guard let groups = profile.lockGroups else { return }
            options.digest = { key in
                let digest = key.digest
                return MD5Digest(high: digest.high, low: digest.low & ~127 | digest.low % groups)
            }
        }
        return parts
    }

    /// Whether it is this caller's turn to end the process.
    private func beginTurning() -> SimulatedProcess? {
        state.withLock { state in
            guard !state.isTurning, let process = state.process else { return nil }
            state.isTurning = true
            state.model.didTurnProcess()
            return process
        }
    }

    private func endTurning() {
        open()
        state.withLock { state in
            state.isTurning = false
            state.model.didTurnProcess()
        }
    }

    /// Shuts the cache down and opens it again.
    func restart() async {
        guard let process = beginTurning() else { return }
        await process.cache.shutdown()
        state.withLock { $0.earlier.append(process.files) }
        endTurning()
    }

    /// The process dies, and the disk is as a power cut may leave it.
    func crash(_ outcome: CrashOutcome) {
        guard let process = beginTurning() else { return }
        process.files.die()
        let after = process.files.base.afterCrash(outcome)
        state.withLock { state in
            state.disk = after
            state.process = nil
            state.earlier = []
            // FORMAT and LOCK may have to be written again before anything can leave.
            state.model.space.tolerate(after.allocatedBytes + 16_384)
        }
        // What it had begun ends by itself, on a disk that answers nothing.
        Task { await process.cache.shutdown() }
        endTurning()
    }

    /// The last process ends.
    func close() async {
        guard let process = state.withLock({ $0.process.take() }) else { return }
        await process.cache.shutdown()
        state.withLock { $0.earlier.append(process.files) }
    }

    /// What processes that have ended still have open.
    var openFiles: [String] { state.withLock { $0.earlier.flatMap(\.openFiles) } }

    // MARK: The limit

    /// What an earlier process has open is not free when the present one removes it, which it
    /// cannot know.
    private func checkSpace(of disk: InMemoryFileSystem) {
        let allocated = disk.allocatedBytes
        let now = scheduler.time.monotonicTime()
        let complaint = state.withLock { state -> String? in
            state.earlier.removeAll { $0.openFiles.isEmpty }
            guard state.disk === disk, state.earlier.isEmpty,
                !state.model.space.allows(allocated, at: now)
            else { return nil }
            return "\(allocated) bytes are allocated under a limit of \(state.model.space.limit)"
        }
        if let complaint { fail("\(complaint)\n\(account(of: disk))") }
    }

    /// What is allocated, and what the store has charged for it.
    private func account(of disk: InMemoryFileSystem) -> String {
        let store = state.withLock { $0.process }?.cache.engine.storage.disk.openStore
        let charged = store?.state.withLock { state in
            "booked \(state.space.bytes), reserved \(state.space.reserved), "
                + "removed and open \(state.space.pendingRelease)"
        }
        let files = disk.files.sorted { $0.key < $1.key }.map { "\($0.key) \($0.value)" }
        let views = state.withLock { $0.earlier + [$0.process?.files].compactMap { $0 } }
        let open = views.flatMap(\.openSizes).map { "open: \($0)" }
        return ([charged ?? "no store"] + files + open).joined(separator: "\n")
    }
}
#endif
