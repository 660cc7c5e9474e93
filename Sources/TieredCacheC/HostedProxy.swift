import Dispatch
import FoundationEssentials
import Logging
import TieredCache
import TieredCacheProxy

/// The proxy of a cache, once a program wants it.
///
/// States: `none` → `starting` → `running`, or `none` again after a failure; `stop` leads to
/// `stopped` from each.
final class HostedProxy: Sendable {
    private enum State {
        case none
        case starting(Milestone)
        case running(PlayerProxy)
        case stopped
    }

    private let cache: MediaCache
    private let directory: URL?
    private let settings: ProxySettings
    private let state = Guarded(State.none)
    private let failure = Guarded<CacheError?>(nil)

    /// Creates it; nothing listens yet.
    init(_ cache: MediaCache, directory: URL?, logger: Logger) {
        self.cache = cache
        self.directory = directory
        var settings = ProxySettings()
        settings.logger = logger
        self.settings = settings
    }

    /// Waits until it listens, for two seconds at most; it goes on starting after that.
    func start() throws(Status) {
        let (milestone, isFirst) = try beginning()
        guard let milestone else { return }
        if isFirst { Task(priority: .high) { await listen(milestone) } }
        guard milestone.wait(until: .now() + .seconds(2)) else {
            throw Status(CacheError(.timedOut, ""))
        }
        if let error = failure.withLock({ $0 }) { throw Status(error) }
    }

    private func beginning() throws(Status) -> (milestone: Milestone?, isFirst: Bool) {
        let begun = state.withLock { state -> Result<(Milestone?, Bool), Status> in
            switch state {
            case .running: return .success((nil, false))
            case .starting(let milestone): return .success((milestone, false))
            case .stopped: return .failure(Status(CacheError(.shutDown, "")))
            case .none:
                let milestone = Milestone()
                state = .starting(milestone)
                return .success((milestone, true))
            }
        }
        return try begun.get()
    }

    private func listen(_ milestone: Milestone) async {
        var started: PlayerProxy?
        var error: CacheError?
        do throws(CacheError) {
            started = try await PlayerProxy.start(
                cache: cache,
                directory: directory,
                settings: settings
            )
        } catch let problem {
            error = problem
        }
        failure.withLock { $0 = error }
        let late = state.withLock { state -> PlayerProxy? in
            if case .stopped = state { return started }
            state = started.map { .running($0) } ?? .none
            return nil
        }
        await late?.stop()
        milestone.reach()
    }

    /// The URL that leads through it.
    func url(for url: String) throws(Status) -> String {
        let running = state.withLock { state -> PlayerProxy? in
            if case .running(let proxy) = state { proxy } else { nil }
        }
        guard let running else { throw .unknown }
        return try translating { () throws(CacheError) in try running.url(for: url) }
    }

    /// Stops listening, for good.
    func stop() async {
        let before = state.withLock { state in
            defer { state = .stopped }
            return state
        }
        if case .running(let proxy) = before { await proxy.stop() }
    }
}
