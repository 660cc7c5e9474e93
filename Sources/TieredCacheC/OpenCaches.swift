import CTieredCache
import Dispatch
import Glibc
import SystemPackage
import TieredCache

/// The caches of the process, one for each directory.
///
/// States of a directory: absent → `opening` → `open`, with a number of holders → `closing` →
/// absent. An open that meets `opening` waits for it, as for the disk; one that meets `closing`
/// waits until four seconds after that has begun, and takes the place of a cache that hangs in its
/// end then: absent for one is `opening` for the other. The time is the closing's own, so that an
/// open that has waited for something else takes the place of none that has just begun to close,
/// and a second one waits no more for one that hangs.
final class OpenCaches: Sendable {
    private struct Open {
        let hosted: HostedCache
        /// The handles of it, its streams and its jobs.
        var holders = 1
    }

    private enum Entry {
        case opening(Milestone)
        /// Opens wait for it until then.
        case closing(Milestone, until: DispatchTime)
        case open(Open)
    }

    private struct State {
        var entries: [FilePath: Entry] = [:]
        var lastNumber = 0
    }

    /// What functions of the header wait for at most, and what they ask the system.
    struct Limits {
        /// How long a cache may be closing, until an open of its directory takes its place.
        var opening = DispatchTimeInterval.seconds(4)
        /// The last release, for log and end of its cache together.
        var release = DispatchTimeInterval.seconds(2)
        /// Within that time: lines that the log function has not been called with by then are
        /// dropped.
        var lines = DispatchTimeInterval.milliseconds(1500)
        /// Tells the time.
        var now: @Sendable () -> DispatchTime = { .now() }
        /// Where relative directories begin.
        var workingDirectory: @Sendable () -> FilePath? = { CanonicalPath.workingDirectory }
    }

    static let all = OpenCaches()

    private let state = Guarded(State())
    private let limits: Limits

    /// No cache is open.
    init(limits: Limits = Limits()) {
        self.limits = limits
    }

    // MARK: Opening

    /// Opens a cache, or finds the one that is open; the caller holds it then.
    ///
    /// - Throws: `TIERED_E_INVALID` for a relative directory where there is no working directory,
    ///   `TIERED_E_STORAGE` where the process has no descriptors or threads left.
    func open(_ options: HostedOptions) throws(Status) -> OpenedCache {
        try ProcessParts.start()
        do throws(Status) {
            return OpenedCache(try cache(options), log: options.log)
        } catch {
            let now = limits.now()
            options.log?.close(lines: now + limits.lines, until: now + limits.release)
            throw error
        }
    }

    private func cache(_ options: HostedOptions) throws(Status) -> HostedCache {
        guard let path = options.configuration.path else {
            let name = state.withLock { state in
                state.lastNumber += 1
                return FilePath("memory \(state.lastNumber)")
            }
            return try make(options, name, Milestone())
        }
        var options = options
        // Once: the program may change its working directory while this waits.
        let given = try CanonicalPath.absolute(path, in: limits.workingDirectory())
        while true {
            // Each time: what was absent may be a link by now.
            let path = CanonicalPath.followingLinks(given)
            options.configuration.path = path
            switch reserve(path, at: limits.now()) {
            case .found(let hosted):
                if let log = options.log { hosted.logs.add(log) }
                return hosted
            case .mine(let done): return try make(options, path, done)
            case .opening(let milestone): milestone.wait(until: .distantFuture)
            case .closing(let milestone, let end): milestone.wait(until: end)
            }
        }
    }

    private enum Reservation {
        /// It is open, and held for the caller.
        case found(HostedCache)
        /// The caller opens it, and reaches the milestone then.
        case mine(Milestone)
        case opening(Milestone)
        case closing(Milestone, until: DispatchTime)
    }

    /// What there is of a directory.
    ///
    /// - Parameters:
    ///   - name: its path.
    ///   - now: the time; a cache that should have closed by then has the directory until its end,
    ///     and the caller's stores nothing before.
    /// - Returns: what the caller does now.
    private func reserve(_ name: FilePath, at now: DispatchTime) -> Reservation {
        state.withLock { state in
            switch state.entries[name] {
            case .open(var open):
                open.holders += 1
                state.entries[name] = .open(open)
                return .found(open.hosted)
            case .opening(let milestone):
                return .opening(milestone)
            case .closing(let milestone, let end) where now < end:
                return .closing(milestone, until: end)
            case .closing, nil:
                let milestone = Milestone()
                state.entries[name] = .opening(milestone)
                return .mine(milestone)
            }
        }
    }

    private func make(
        _ options: HostedOptions,
        _ name: FilePath,
        _ done: Milestone
    ) throws(Status) -> HostedCache {
        defer { done.reach() }
        do throws(CacheError) {
            let hosted = try SignalMask.blocking { () throws(CacheError) in
                try HostedCache(options, name: name)
            }
            state.withLock { $0.entries[name] = .open(Open(hosted: hosted)) }
            return hosted
        } catch {
            state.withLock { _ = $0.entries.removeValue(forKey: name) }
            throw Status(error)
        }
    }

    // MARK: Holding

    /// Counts a stream or a job of a cache that the caller holds or has found.
    ///
    /// - Throws: `TIERED_E_SHUT_DOWN` if the cache was closed meanwhile.
    func hold(_ hosted: HostedCache) throws(Status) {
        let isHeld = state.withLock { state in
            guard case .open(var open) = state.entries[hosted.name], open.hosted === hosted else {
                return false
            }
            open.holders += 1
            state.entries[hosted.name] = .open(open)
            return true
        }
        guard isHeld else { throw Status(TIERED_E_SHUT_DOWN) }
    }

    /// A stream or job is gone; closes the cache in the background if it was the last.
    func letGo(_ hosted: HostedCache) { _ = drop(hosted, at: limits.now()) }

    /// A handle of the cache is gone: its log gets what was logged so far, and nothing more.
    ///
    /// Where this closes the cache it waits for that, so that the log hears of the end; then for
    /// calls of the log function. Two seconds at most for all.
    func letGo(_ opened: OpenedCache) {
        let now = limits.now()
        let (lines, end) = (now + limits.lines, now + limits.release)
        let closing = drop(opened.hosted, at: now)
        closing?.wait(until: lines)
        opened.closeLog(lines: lines, until: end)
        closing?.wait(until: end)
    }

    /// - Returns: reached when the cache is closed; nil where others hold it.
    private func drop(_ hosted: HostedCache, at now: DispatchTime) -> Milestone? {
        let closing = state.withLock { state -> Milestone? in
            guard case .open(var open) = state.entries[hosted.name], open.hosted === hosted else {
                return nil
            }
            open.holders -= 1
            guard open.holders == 0 else {
                state.entries[hosted.name] = .open(open)
                return nil
            }
            let milestone = Milestone()
            state.entries[hosted.name] = .closing(milestone, until: now + limits.opening)
            return milestone
        }
        guard let closing else { return nil }
        Task(priority: .high) {
            await hosted.close()
            state.withLock { state in
                // Another may have taken its place.
                guard case .closing(let present, _) = state.entries[hosted.name],
                    present === closing
                else { return }
                state.entries[hosted.name] = nil
            }
            closing.reach()
        }
        return closing
    }
}
