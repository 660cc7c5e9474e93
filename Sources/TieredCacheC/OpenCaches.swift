import CLinuxCalls
import CTieredCache
import Dispatch
import Glibc
import SystemPackage
import TieredCache

/// The caches of the process, one for each directory.
///
/// States of a directory: absent → `opening` → `open`, with a number of holders → `closing` →
/// absent. An open that meets `opening` waits for it, as for the disk; one that meets `closing`
/// waits four seconds at most, and takes the place of a cache that hangs in its end then: absent
/// for one is `opening` for the other.
final class OpenCaches: Sendable {
    private struct Open {
        let hosted: HostedCache
        /// The handles of it, its streams and its jobs.
        var holders = 1
    }

    private enum Entry {
        case opening(Milestone)
        case closing(Milestone)
        case open(Open)
    }

    private struct State {
        var entries: [String: Entry] = [:]
        var lastNumber = 0
    }

    /// What functions of the header wait for at most.
    struct Limits {
        /// An open, for a cache of the same directory that is closing.
        var opening = DispatchTimeInterval.seconds(4)
        /// The last release, for log and end of its cache together.
        var release = DispatchTimeInterval.seconds(2)
        /// Tells the time.
        var now: @Sendable () -> DispatchTime = { .now() }
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
        tc_watch_forks()
        try ProcessParts.start()
        return OpenedCache(try cache(options), log: options.log)
    }

    private func cache(_ options: HostedOptions) throws(Status) -> HostedCache {
        guard let path = options.configuration.path else {
            let name = state.withLock { state in
                state.lastNumber += 1
                return "memory \(state.lastNumber)"
            }
            return try make(options, name, Milestone())
        }
        var options = options
        let deadline = limits.now() + limits.opening
        while true {
            // Resolved anew: what was absent may be a link by now.
            let path = try CanonicalPath.of(path)
            options.configuration.path = path
            switch reserve(path.string, mayReplace: limits.now() >= deadline) {
            case .found(let hosted): return hosted
            case .mine(let done): return try make(options, path.string, done)
            case .opening(let milestone): milestone.wait(until: .distantFuture)
            case .closing(let milestone): milestone.wait(until: deadline)
            }
        }
    }

    private enum Reservation {
        /// It is open, and held for the caller.
        case found(HostedCache)
        /// The caller opens it, and reaches the milestone then.
        case mine(Milestone)
        case opening(Milestone)
        case closing(Milestone)
    }

    /// What there is of a directory.
    ///
    /// - Parameters:
    ///   - name: its path.
    ///   - mayReplace: whether the caller has waited for a cache that closes. That one has the
    ///     directory until its end; the caller's stores nothing before.
    /// - Returns: what the caller does now.
    private func reserve(_ name: String, mayReplace: Bool) -> Reservation {
        state.withLock { state in
            switch state.entries[name] {
            case .open(var open):
                open.holders += 1
                state.entries[name] = .open(open)
                return .found(open.hosted)
            case .opening(let milestone):
                return .opening(milestone)
            case .closing(let milestone) where !mayReplace:
                return .closing(milestone)
            case .closing, nil:
                let milestone = Milestone()
                state.entries[name] = .opening(milestone)
                return .mine(milestone)
            }
        }
    }

    private func make(
        _ options: HostedOptions,
        _ name: String,
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
    func letGo(_ hosted: HostedCache) { _ = drop(hosted) }

    /// A handle of the cache is gone: its log gets nothing more.
    ///
    /// Waits for a call of the log function, and where this closes the cache for that; two seconds
    /// at most for both.
    func letGo(_ opened: OpenedCache) {
        let deadline = limits.now() + limits.release
        let closing = drop(opened.hosted)
        opened.closeLog(until: deadline)
        closing?.wait(until: deadline)
    }

    /// - Returns: reached when the cache is closed; nil where others hold it.
    private func drop(_ hosted: HostedCache) -> Milestone? {
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
            state.entries[hosted.name] = .closing(milestone)
            return milestone
        }
        guard let closing else { return nil }
        Task(priority: .high) {
            await hosted.close()
            state.withLock { state in
                // Another may have taken its place.
                guard case .closing(let present) = state.entries[hosted.name],
                    present === closing
                else { return }
                state.entries[hosted.name] = nil
            }
            closing.reach()
        }
        return closing
    }
}
