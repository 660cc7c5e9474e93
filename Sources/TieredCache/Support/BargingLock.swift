import Synchronization

#if os(Linux)
import CLinuxCalls
import Glibc

/// A lock that a running thread may take before one that sleeps, unless that has waited for long.
///
/// `Synchronization.Mutex` is a futex with priority inheritance on Linux: the kernel hands it to the
/// thread that has waited longest, which has to be woken before the lock can be taken again. Where
/// several threads take one lock often, as those that store take the lock of a store, each hold
/// then costs a change of thread. Measured with 64 clients of the reverse proxy: 32 changes of
/// thread for each miss.
///
/// A sleeper that is woken may find the lock taken again, any number of times. So one that has
/// waited for ``patience`` reserves it: no other thread takes it then before that one.
///
/// The thread sanitizer sees the atomic word, and so this lock.
struct BargingLock: ~Copyable, Sendable {
    /// How long a sleeper lets others take the lock before it, in nanoseconds.
    private static let patience = 50_000_000

    /// The bits of the word.
    private static let taken: UInt32 = 1
    /// There may be threads that sleep; those that wait with `taken` clear set it again.
    private static let hasSleepers: UInt32 = 2
    /// Only the thread that has set this may take the lock.
    private static let reserved: UInt32 = 4

    /// What sleepers are woken by: all, or the one that has reserved the lock.
    private static let anybody: UInt32 = 1
    private static let reserver: UInt32 = 2

    private let word = Atomic<UInt32>(0)

    /// Whether a thread that has waited for long has the next turn.
    var isReserved: Bool { word.load(ordering: .relaxed) & Self.reserved != 0 }

    @inline(__always)
    borrowing func lock() {
        if !tryLock() { waitForTurn() }
    }

    @inline(__always)
    borrowing func unlock() {
        let isAlone = word.compareExchange(
            expected: Self.taken,
            desired: 0,
            successOrdering: .releasing,
            failureOrdering: .relaxed
        ).exchanged
        if !isAlone { unlockAndWake() }
    }

    @inline(__always)
    private borrowing func tryLock() -> Bool { replace(0, by: Self.taken) }

    @inline(__always)
    private borrowing func replace(_ seen: UInt32, by next: UInt32) -> Bool {
        word.compareExchange(
            expected: seen,
            desired: next,
            successOrdering: .acquiring,
            failureOrdering: .relaxed
        ).exchanged
    }

    /// Looks again for a few microseconds: a hold is short, unless its thread lost the processor.
    @inline(never)
    private borrowing func waitForTurn() {
        for _ in 0..<64 {
            tc_cpu_relax()
            if word.load(ordering: .relaxed) == 0, tryLock() { return }
        }
        sleepForTurn()
    }

    private borrowing func sleepForTurn() {
        var end = tc_instant_after(Self.patience)
        var (isLate, hasReserved) = (false, false)
        while true {
            let seen = word.load(ordering: .relaxed)
            let isReserved = seen & Self.reserved != 0
            if seen & Self.taken == 0, hasReserved || !isReserved {
                // There may be other sleepers, for whom the next unlock looks.
                if replace(seen, by: Self.taken | Self.hasSleepers) { return }
                continue
            }
            let reserves = isLate && !isReserved
            let next = seen | Self.hasSleepers | (reserves ? Self.reserved : 0)
            guard next == seen || replace(seen, by: next) else { continue }
            if reserves { hasReserved = true }
            let hasEnded = withAddress { word in
                hasReserved
                    ? tc_futex_wait_until(word, next, Self.reserver, nil)
                    : tc_futex_wait_until(word, next, Self.anybody, &end)
            }
            guard hasEnded else { continue }
            isLate = true
            // Another one has it reserved now; this one looks again after as long.
            end = tc_instant_after(Self.patience)
        }
    }

    @inline(never)
    private borrowing func unlockAndWake() {
        var seen = word.load(ordering: .relaxed)
        while true {
            let (isDone, found) = word.weakCompareExchange(
                expected: seen,
                desired: seen & Self.reserved,
                successOrdering: .releasing,
                failureOrdering: .relaxed
            )
            if isDone { break }
            seen = found
        }
        let isReserved = seen & Self.reserved != 0
        withAddress { tc_futex_wake_one($0, isReserved ? Self.reserver : Self.anybody) }
    }

    private borrowing func withAddress<Result>(_ body: (UnsafePointer<UInt32>) -> Result) -> Result
    {
        // An atomic is stored in place, and what contains it does not move while it is borrowed.
        withUnsafePointer(to: word) { pointer in
            body(UnsafeRawPointer(pointer).assumingMemoryBound(to: UInt32.self))
        }
    }
}
#else
/// A lock of the platform's own.
struct BargingLock: ~Copyable, Sendable {
    private let mutex = Mutex(())

    @inline(__always)
    borrowing func lock() { mutex._unsafeLock() }

    @inline(__always)
    borrowing func unlock() { mutex._unsafeUnlock() }
}
#endif
