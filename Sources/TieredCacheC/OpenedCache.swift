import Dispatch
import TieredCache

/// What `tiered_cache_open` gives: a cache, which others may have opened too, and a log of one's
/// own.
///
/// The log belongs to the one that opened, as its function does: a plug-in that is unloaded takes
/// its function away, and others may still hold the cache.
final class OpenedCache: Sendable {
    let hosted: HostedCache
    private let log: LogBridge?

    /// The cache's lines go to the log already.
    init(_ hosted: HostedCache, log: LogBridge?) {
        self.hosted = hosted
        self.log = log
    }

    /// Logs what waits, and nothing more; see ``LogBridge/close(lines:until:)``.
    func closeLog(lines: DispatchTime, until end: DispatchTime) {
        guard let log else { return }
        hosted.logs.remove(log)
        log.close(lines: lines, until: end)
    }
}
