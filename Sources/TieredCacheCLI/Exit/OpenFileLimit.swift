import CLinuxCalls

#if canImport(Glibc)
import Glibc
#elseif canImport(Darwin)
import Darwin
#endif

/// The lowest limit of open files with which requests to an origin are sent.
///
/// Below it the network library would terminate the process without a useful message.
enum OpenFileLimit {
    /// The descriptors of standard streams, the cache directory, an entry, the output file and one
    /// download.
    private static let base = 32
    /// The descriptors of each event loop thread.
    private static let perThread = 3

    /// Raises the limit as far as possible.
    ///
    /// - Throws: ``CommandFailure`` with ``ExitStatus/localFailed`` if that is too low.
    static func require() throws(CommandFailure) {
        tc_raise_descriptor_limit()
        var limit = rlimit()
        #if canImport(Glibc)
        // Glibc declares this parameter as an enumeration, Darwin as a number.
        let result = getrlimit(__rlimit_resource_t(RLIMIT_NOFILE.rawValue), &limit)
        #else
        let result = getrlimit(RLIMIT_NOFILE, &limit)
        #endif
        // An unknown limit is accepted.
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
            message: "only \(limit) files may be open, and at least \(needed) are needed; "
                + "raise the limit (ulimit -n \(needed))"
        )
    }
}
