import CLinuxCalls
import CTieredCache
import Glibc
import NIOPosix
import SystemPackage
import TieredCache

/// The caches of the process, one for each directory.
///
/// States of a directory: absent → `opening` → `open`, with a number of holders → `closing` →
/// absent. An open that meets `opening` or `closing` waits, two seconds at most.
final class OpenCaches: Sendable {
    private struct Open {
        let hosted: HostedCache
        /// The handles of it, its streams and its jobs.
        var holders = 1
        /// Those of them that are handles of the cache itself.
        var handles = 1
    }

    private enum Entry {
        case busy(Milestone)
        case open(Open)
    }

    private struct State {
        var entries: [String: Entry] = [:]
        var lastNumber = 0
    }

    static let all = OpenCaches()

    private let state = Guarded(State())

    // MARK: Opening

    /// Opens a cache, or finds the one that is open; the caller holds it then.
    func open(
        _ configuration: MediaCache.Configuration,
        log: LogBridge?
    ) throws(Status)
        -> HostedCache
    {
        tc_watch_forks()
        // SwiftNIO's threads serve all caches, and inherit the mask of this one.
        SignalMask.blocking { _ = MultiThreadedEventLoopGroup.singleton }
        guard let path = configuration.path else {
            let name = state.withLock { state in
                state.lastNumber += 1
                return "memory \(state.lastNumber)"
            }
            return try make(configuration, name: name, done: Milestone(), log: log)
        }
        // What a busy directory becomes is waited for twice: it may close, and be opened by another.
        for _ in 0..<2 {
            let name = Self.canonical(path)
            switch reserve(name) {
            case .found(let hosted): return hosted
            case .mine(let done):
                return try make(configuration, name: name, done: done, log: log)
            case .busy(let milestone): milestone.wait()
            }
        }
        // It hangs in a disk or a peer, and has the directory: this one stores nothing before that
        // ends.
        let name = state.withLock { state in
            state.lastNumber += 1
            return "\(path) \(state.lastNumber)"
        }
        return try make(configuration, name: name, done: Milestone(), log: log)
    }

    private enum Reservation {
        /// It is open, and held for the caller.
        case found(HostedCache)
        /// The caller opens it, and reaches the milestone then.
        case mine(Milestone)
        case busy(Milestone)
    }

    private func reserve(_ name: String) -> Reservation {
        state.withLock { state in
            switch state.entries[name] {
            case .open(var open):
                open.holders += 1
                open.handles += 1
                state.entries[name] = .open(open)
                return .found(open.hosted)
            case .busy(let milestone):
                return .busy(milestone)
            case nil:
                let milestone = Milestone()
                state.entries[name] = .busy(milestone)
                return .mine(milestone)
            }
        }
    }

    private func make(
        _ configuration: MediaCache.Configuration,
        name: String,
        done: Milestone,
        log: LogBridge?
    ) throws(Status) -> HostedCache {
        defer { done.reach() }
        do throws(CacheError) {
            let hosted = try SignalMask.blocking { () throws(CacheError) in
                try HostedCache(configuration, name: name, log: log)
            }
            state.withLock { $0.entries[name] = .open(Open(hosted: hosted)) }
            return hosted
        } catch {
            state.withLock { _ = $0.entries.removeValue(forKey: name) }
            throw Status(error)
        }
    }

    /// One name for all spellings of a directory, which need not exist.
    private static func canonical(_ path: FilePath) -> String {
        if let known = realpath(path.string, nil) {
            defer { free(known) }
            return String(cString: known)
        }
        let (parent, last) = (path.removingLastComponent(), path.lastComponent)
        guard let last, parent != path else { return path.lexicallyNormalized().string }
        let start = parent.isEmpty ? FilePath(".") : parent
        return FilePath(canonical(start)).appending(last).lexicallyNormalized().string
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
    func letGo(_ hosted: HostedCache) { _ = drop(hosted, isHandle: false) }

    /// A handle of the cache is gone; waits where that closes the cache, two seconds at most.
    func letGoOfHandle(_ hosted: HostedCache) {
        let (closing, isLastHandle) = drop(hosted, isHandle: true)
        if isLastHandle { hosted.closeLog() }
        closing?.wait()
    }

    private func drop(
        _ hosted: HostedCache,
        isHandle: Bool
    ) -> (closing: Milestone?, isLastHandle: Bool) {
        let (closing, isLastHandle) = state.withLock { state -> (Milestone?, Bool) in
            guard case .open(var open) = state.entries[hosted.name] else { return (nil, false) }
            open.holders -= 1
            if isHandle { open.handles -= 1 }
            let isLastHandle = isHandle && open.handles == 0
            guard open.holders == 0 else {
                state.entries[hosted.name] = .open(open)
                return (nil, isLastHandle)
            }
            let milestone = Milestone()
            state.entries[hosted.name] = .busy(milestone)
            return (milestone, isLastHandle)
        }
        if let closing {
            Task(priority: .high) {
                await hosted.close()
                state.withLock { _ = $0.entries.removeValue(forKey: hosted.name) }
                closing.reach()
            }
        }
        return (closing, isLastHandle)
    }
}
