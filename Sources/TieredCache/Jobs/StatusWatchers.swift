/// The consumers of a job's status, and which thread tells them.
///
/// States: `silent` → `telling` (`beginTelling`) → `silent` (`takeNews` finds nothing new). Only
/// the thread that has begun tells, or a task that continues for it, and it tells the news of
/// others too: so no older status follows a newer one, although no lock is held while the consumers
/// are resumed.
struct StatusWatchers {
    typealias Watcher = AsyncStream<DownloadStatus>.Continuation

    /// What the watchers are to be told.
    struct News {
        let status: DownloadStatus
        let watchers: [Watcher]
        /// Whether the streams end with it.
        let isLast: Bool

        /// Resumes the consumers; call it under no lock.
        func tell() {
            for watcher in watchers {
                watcher.yield(status)
                if isLast { watcher.finish() }
            }
        }
    }

    private var watchers: [UInt64: Watcher] = [:]
    private var lastNumber: UInt64 = 0
    private var hasNews = false
    private var isTelling = false

    /// All watchers, in no order.
    var all: [Watcher] { Array(watchers.values) }

    /// Adds a watcher, which has the present status.
    ///
    /// - Returns: the number to remove it by.
    mutating func add(_ watcher: Watcher) -> UInt64 {
        lastNumber += 1
        watchers[lastNumber] = watcher
        return lastNumber
    }

    /// - Returns: the watcher, to be released outside the lock.
    mutating func remove(_ number: UInt64) -> Watcher? { watchers.removeValue(forKey: number) }

    /// Notes that the status has changed.
    ///
    /// - Returns: whether the caller tells the watchers.
    mutating func beginTelling() -> Bool {
        hasNews = true
        defer { isTelling = true }
        return !isTelling
    }

    /// The news for the thread that tells.
    ///
    /// - Parameters:
    ///   - status: the present status.
    ///   - isLast: whether it stays; the watchers are then forgotten.
    /// - Returns: nil if there is none, which ends the telling.
    mutating func takeNews(_ status: DownloadStatus, isLast: Bool) -> News? {
        guard hasNews else {
            isTelling = false
            return nil
        }
        hasNews = false
        defer { if isLast { watchers = [:] } }
        return News(status: status, watchers: all, isLast: isLast)
    }
}
