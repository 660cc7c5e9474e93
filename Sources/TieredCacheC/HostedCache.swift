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
    private let hasDirectory: Bool
    /// Under which it stands in ``OpenCaches``: its directory, or a number.
    let name: String
    let proxy: HostedProxy
    private let log: LogBridge?
    private let state = Guarded(State())

    init(
        _ configuration: MediaCache.Configuration,
        name: String,
        log: LogBridge?
    ) throws(CacheError) {
        var configuration = configuration
        if let log { configuration.logger = log.logger }
        cache = try MediaCache(configuration)
        proxy = HostedProxy(cache, directory: configuration.directory, logger: log?.logger)
        hasDirectory = configuration.path != nil
        self.name = name
        self.log = log
    }

    /// Why the directory cannot be used; nil if it can, and where none is wanted.
    var storageError: CacheError? { hasDirectory ? cache.storageError : nil }

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

    /// Calls the log function of the program no more.
    func closeLog() { log?.close() }

    /// Ends all of it, keeping what arrived.
    func close() async {
        prefetch([], bytesEach: 0)
        await proxy.stop()
        await cache.shutdown()
        closeLog()
    }
}
