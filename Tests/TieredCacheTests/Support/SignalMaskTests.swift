import Glibc
import Testing

@testable import TieredCache

/// Signals stay with the threads of the application.
@Suite(.timeLimit(.minutes(1)))
struct SignalMaskTests {
    private func blocked() -> Set<CInt> {
        var mask = sigset_t()
        pthread_sigmask(SIG_BLOCK, nil, &mask)
        return Set((1...31).filter { sigismember(&mask, $0) == 1 })
    }

    @Test("A thread that was started blocks what is not of its own making")
    func threads() async {
        let own: Set<CInt> = [SIGSEGV, SIGBUS, SIGFPE, SIGILL, SIGTRAP, SIGSYS, SIGPROF]
        let executor = IOExecutor(threads: 1, name: "test")
        let mask = await executor.run { blocked() }
        #expect(mask == Set(1...31).subtracting(own).subtracting([SIGKILL, SIGSTOP]))
    }

    @Test("The mask of the calling thread is as it was, also after an error")
    func restores() {
        struct Failure: Error {}
        let before = blocked()
        let inside = SignalMask.blocking { blocked() }
        #expect(inside.isSuperset(of: before) && inside.contains(SIGTERM))
        #expect(blocked() == before)
        #expect(throws: Failure.self) {
            try SignalMask.blocking { () throws(Failure) in throw Failure() }
        }
        #expect(blocked() == before)
    }
}
