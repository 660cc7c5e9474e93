import CTieredCache
import SystemPackage
import TieredCache
import TieredCacheProxy

/// A cache that handles stand for, with what belongs to it as long as it is open.
///
/// It is held by each handle of it, and by each handle of its streams and jobs; the last of them
/// closes it, see ``OpenCaches``.
final class HostedCache: Sendable {
    private struct State {
        var prefetcher: Prefetcher?
        /// The bytes that it fetches of each item.
        var bytesEach: Int64 = 0
        var reserve = PlaybackReserve.nothingPlaying
    }

    let cache: MediaCache
    private let isMemoryOnly: Bool
    /// Under which it stands in ``OpenCaches``: its directory, or a relative path with a number.
    let name: FilePath
    let proxy: HostedProxy
    private let guests: GuestService
    /// Those of all that have opened it.
    let logs = CacheLogs()
    private let state = Guarded(State())

    /// Opens it; its log hears of that.
    init(_ options: HostedOptions, name: FilePath) throws(CacheError) {
        if let log = options.log { logs.add(log) }
        var configuration = options.configuration
        configuration.logger = logs.logger
        cache = try MediaCache(configuration)
        proxy = HostedProxy(cache, directory: configuration.directory, logger: logs.logger)
        guests = GuestService(cache: cache, directory: configuration.directory)
        isMemoryOnly = options.isMemoryOnly
        self.name = name
    }

    /// Why the directory cannot be used; nil if it can, and where none is wanted.
    var storageError: CacheError? { isMemoryOnly ? nil : cache.storageError }

    /// Replaces the rules for hosts, for all requests to come.
    func setRules(_ rules: HostRules) {
        proxy.setRules(rules)
        guests.setRules(rules)
    }

    /// Replaces what is prefetched; no request ends it.
    func prefetch(_ requests: [CacheRequest], bytesEach: Int64) {
        let (prefetcher, replaced) = state.withLock { state -> (Prefetcher?, Prefetcher?) in
            let before = state.prefetcher
            if requests.isEmpty {
                state.prefetcher = nil
            } else if before == nil || state.bytesEach != bytesEach {
                var options = PrefetchOptions()
                if bytesEach > 0 {
                    options.headBytes = bytesEach
                    let (sum, overflow) = bytesEach.multipliedReportingOverflow(by: 20)
                    options.budget = max(options.budget, overflow ? .max : sum)
                }
                let prefetcher = cache.prefetcher(options: options)
                prefetcher.playerHas(state.reserve)
                (state.prefetcher, state.bytesEach) = (prefetcher, bytesEach)
            }
            return (state.prefetcher, before)
        }
        prefetcher?.rank(requests)
        // Released outside the lock: that cancels its tasks.
        withExtendedLifetime(replaced) {}
    }

    /// Tells how much the player has.
    func playerHas(_ reserve: PlaybackReserve) {
        let prefetcher = state.withLock { state in
            state.reserve = reserve
            return state.prefetcher
        }
        prefetcher?.playerHas(reserve)
    }

    /// Ends all of it, keeping what arrived.
    func close() async {
        prefetch([], bytesEach: 0)
        await proxy.stop()
        await guests.stop()
        await cache.shutdown()
    }
}
