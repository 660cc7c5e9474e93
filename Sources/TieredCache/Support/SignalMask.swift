#if canImport(Glibc)
import Glibc
#elseif canImport(Darwin)
import Darwin
#endif

/// Keeps the signals of the process away from threads of the library.
///
/// A thread inherits the mask of the thread that starts it, and a host expects its handlers to run
/// on its own threads. What is left are signals that tell of a fault of the thread itself, and
/// `SIGPROF`, which counts the time of all threads.
package enum SignalMask {
    /// Runs `body` while the calling thread blocks all other signals; threads that it starts block
    /// them for good.
    package static func blocking<Result, Failure: Error>(
        _ body: () throws(Failure) -> Result
    ) throws(Failure) -> Result {
        var (all, before) = (sigset_t(), sigset_t())
        sigfillset(&all)
        for own in [SIGSEGV, SIGBUS, SIGFPE, SIGILL, SIGTRAP, SIGSYS, SIGPROF] {
            sigdelset(&all, own)
        }
        // It fails for an unknown first argument only.
        pthread_sigmask(SIG_BLOCK, &all, &before)
        defer { pthread_sigmask(SIG_SETMASK, &before, nil) }
        return try body()
    }
}
