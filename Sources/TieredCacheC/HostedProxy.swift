import Dispatch
import FoundationEssentials
import HTTPCaching
import Logging
import TieredCache
import TieredCacheProxy

/// The proxy of a cache, once a program wants it.
///
/// States: `none` → `starting` → `running`, or `none` again after a failure; `stop` leads to
/// `stopped` from each.
final class HostedProxy: Sendable {
    private enum Phase {
        case none
        case starting(Milestone)
        case running(PlayerProxy)
        case stopped
    }

    private struct State {
        var phase = Phase.none
        var rules = HostRules()

        var running: PlayerProxy? {
            if case .running(let proxy) = phase { proxy } else { nil }
        }
    }

    private let cache: MediaCache
    private let directory: URL?
    private let settings: ProxySettings
    private let state = Guarded(State())
    private let failure = Guarded<CacheError?>(nil)

    /// Creates it; nothing listens yet.
    init(_ cache: MediaCache, directory: URL?, logger: Logger) {
        self.cache = cache
        self.directory = directory
        var settings = ProxySettings()
        settings.logger = logger
        settings.relaysPlayerFields = true
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
            switch state.phase {
            case .running: return .success((nil, false))
            case .starting(let milestone): return .success((milestone, false))
            case .stopped: return .failure(Status(CacheError(.shutDown, "")))
            case .none:
                let milestone = Milestone()
                state.phase = .starting(milestone)
                return .success((milestone, true))
            }
        }
        return try begun.get()
    }

    private func listen(_ milestone: Milestone) async {
        var started: PlayerProxy?
        var error: CacheError?
        var settings = settings
        // From the first connection on: a player may know the port of an earlier run.
        settings.rules = state.withLock { $0.rules }
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
            if case .stopped = state.phase { return started }
            state.phase = started.map { .running($0) } ?? .none
            started?.setRules(state.rules)
            return nil
        }
        await late?.stop()
        milestone.reach()
    }

    /// The rules for hosts, of all that uses the cache.
    var rules: HostRules { state.withLock { $0.rules } }

    /// Replaces the rules for all requests to come.
    func setRules(_ rules: HostRules) {
        state.withLock { state in
            state.rules = rules
            // Under the lock: of two calls the later one holds here and there.
            state.running?.setRules(rules)
        }
    }

    /// Throws `TIERED_E_EXCLUDED` if a URL is to be used without the cache: a rule excludes its
    /// host, or it is one of the proxy itself.
    func checkUse(of target: TargetURI) throws(Status) {
        let (rules, running) = state.withLock { ($0.rules, $0.running) }
        guard !rules.excludes(target), running?.serves(target) != true else { throw .excluded }
    }

    /// The URL that leads through it.
    func url(for url: String) throws(Status) -> String {
        guard let running = state.withLock({ $0.running }) else { throw .unknown }
        let target = try translating { () throws(CacheError) in try CacheRequest(url).target }
        try checkUse(of: target)
        return try translating { () throws(CacheError) in try running.url(for: url) }
    }

    /// Stops listening, for good.
    func stop() async {
        let running = state.withLock { state in
            defer { state.phase = .stopped }
            return state.running
        }
        await running?.stop()
    }
}
