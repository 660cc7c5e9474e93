/// The consumers of a state's changes, and which thread tells them.
///
/// States: `silent` → `telling` (`beginTelling`) → `silent` (`takeNews` finds nothing new). Only
/// the thread that has begun tells, or a task that continues for it, and it tells the news of
/// others too: so no older element follows a newer one, although no lock is held while the consumers
/// are resumed.
struct StreamWatchers<Element: Sendable> {
    typealias Watcher = AsyncStream<Element>.Continuation

    /// What the watchers are to be told.
    struct News {
        let elements: [Element]
        let watchers: [Watcher]
        /// Whether the streams end with it.
        let isLast: Bool

        /// Resumes the consumers; call it under no lock.
        func tell() {
            for watcher in watchers {
                for element in elements { watcher.yield(element) }
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

    /// Adds a watcher, which has the present state.
    ///
    /// - Returns: the number to remove it by.
    mutating func add(_ watcher: Watcher) -> UInt64 {
        lastNumber += 1
        watchers[lastNumber] = watcher
        return lastNumber
    }

    /// - Returns: the watcher, to be released outside the lock.
    mutating func remove(_ number: UInt64) -> Watcher? { watchers.removeValue(forKey: number) }

    /// Notes that the state has changed.
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
    ///   - elements: what is new.
    ///   - isLast: whether nothing follows; the watchers are then forgotten.
    /// - Returns: nil if there is none, which ends the telling.
    mutating func takeNews(_ elements: [Element], isLast: Bool) -> News? {
        guard hasNews else {
            isTelling = false
            return nil
        }
        hasNews = false
        defer { if isLast { watchers = [:] } }
        return News(elements: elements, watchers: all, isLast: isLast)
    }

    /// Tells all news; call it after ``beginTelling()`` returned true, under no lock.
    ///
    /// Outside locks: to yield takes the lock of the consumer's task, and a task that is cancelled
    /// holds that lock while its stream's termination takes the lock of the watchers' owner.
    ///
    /// - Parameter takeNews: calls ``takeNews(_:isLast:)`` under the lock of the owner.
    static func tell(_ takeNews: @escaping @Sendable () -> News?) {
        LockChecker.assertHoldsNoValue()
        takeNews()?.tell()
        guard let later = takeNews() else { return }
        // Others report meanwhile, perhaps without end, and this thread may be one that must not
        // wait: a task goes on.
        Task {
            var news: News? = later
            while let current = news {
                current.tell()
                await Task.yield()
                news = takeNews()
            }
        }
    }
}
