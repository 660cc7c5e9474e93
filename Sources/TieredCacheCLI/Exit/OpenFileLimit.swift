import CLinuxCalls

#if canImport(Glibc)
import Glibc
#elseif canImport(Darwin)
import Darwin
#endif

/// The least number of files that must be allowed to be open before anything is asked of an origin.
///
/// Below it the network library ends the process, which would say nothing that helps.
enum OpenFileLimit {
    /// For standard streams, cache directory, an entry and the file that is written, and one
    /// download.
    private static let base = 32
    /// Each thread that serves connections has three of its own.
    private static let perThread = 3

    /// Raises the limit as far as it may be raised.
    ///
    /// - Throws: ``CommandFailure`` with ``ExitStatus/localFailed`` where that is too little.
    static func require() throws(CommandFailure) {
        tc_raise_descriptor_limit()
        var limit = rlimit()
        #if canImport(Glibc)
        let result = getrlimit(__rlimit_resource_t(RLIMIT_NOFILE.rawValue), &limit)
        #else
        let result = getrlimit(RLIMIT_NOFILE, &limit)
        #endif
        // A limit that is not known is no reason to refuse.
        guard result == 0 else { return }
        try require(
            Int(clamping: limit.rlim_cur),
            threads: Int(sysconf(Int32(_SC_NPROCESSORS_ONLN)))
        )
    }

    static func require(_ limit: Int, threads: Int) throws(CommandFailure) {
        let needed = base + perThread * min(max(threads, 1), 1024)
        guard limit < needed else { return }
        throw CommandFailure(
            .localFailed,
            "only \(limit) files may be open, and at least \(needed) are needed; "
                + "raise the limit (ulimit -n \(needed))"
        )
    }
}
