import CLinuxCalls
import CTieredCache
import NIOCore
import NIOPosix
import TieredCache

/// What all caches of a process share: SwiftNIO's event loops, and clocks and threads of Dispatch.
///
/// Neither gives an error where the process has no descriptor or thread left: both end it. So what
/// they take is tried out first. Other threads of the host may still take it in between.
enum ProcessParts {
    private static let first = FirstUse()

    /// Epoll, an event and a clock for each loop.
    private static let descriptorsPerLoop = 3
    /// The same of Dispatch, with its clocks, and the directory of a cache.
    private static let otherDescriptors = 16
    /// Those of a cache for disk, writers and log, and two beside the workers of Dispatch, of which
    /// there is one for each loop.
    private static let otherThreads = 19

    /// Starts them, once in a process.
    ///
    /// One caller tries, as each that tries takes all of it for a moment; others wait meanwhile.
    ///
    /// - Throws: `TIERED_E_STORAGE` where there is no room; the next call tries again.
    static func start() throws(Status) {
        try first.ensure(startAll)
    }

    private static func startAll() throws(Status) {
        let loops = NIOSingletons.groupLoopCountSuggestion
        guard tc_try_descriptors(Int32(descriptorsPerLoop * loops + otherDescriptors)) == 0,
            tc_try_threads(Int32(2 * loops + otherThreads)) == 0
        else { throw Status(TIERED_E_STORAGE) }
        // The threads serve all caches, and inherit the mask of this one.
        SignalMask.blocking { _ = MultiThreadedEventLoopGroup.singleton }
        // Dispatch opens a clock's descriptor when it is first waited for.
        try waiting { () async throws(CacheError) in
            do {
                try await ContinuousClock().sleep(for: .microseconds(1))
                try await SuspendingClock().sleep(for: .microseconds(1))
            } catch {
                // Not cancelled: the task is `waiting`'s own.
            }
        }
    }
}
