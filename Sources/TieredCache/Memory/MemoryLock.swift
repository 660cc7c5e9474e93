#if THREAD_SANITIZER || !os(Linux)
#if canImport(Glibc)
public import Glibc
#elseif canImport(Darwin)
public import Darwin
#endif

/// The lock of a shard, as the thread sanitizer (and a platform without futexes) knows it.
@usableFromInline
struct MemoryLock: ~Copyable, @unchecked Sendable {
    // Unchecked: a pthread mutex is made to be shared; the pointer never changes.
    @usableFromInline let mutex: UnsafeMutablePointer<pthread_mutex_t>

    @usableFromInline
    init() {
        mutex = .allocate(capacity: 1)
        mutex.initialize(to: pthread_mutex_t())
        pthread_mutex_init(mutex, nil)
    }

    deinit {
        pthread_mutex_destroy(mutex)
        mutex.deallocate()
    }

    @inlinable
    borrowing func lock() {
        pthread_mutex_lock(mutex)
    }

    @inlinable
    borrowing func unlock() {
        pthread_mutex_unlock(mutex)
    }
}
#else
import CLinuxCalls
public import Synchronization

/// The lock of a shard: a word that is taken and given back inline, and a futex for who must wait.
///
/// `Synchronization.Mutex` and a pthread mutex do the same behind a call each for taking and giving
/// back, which is measurable next to a lookup of 40 ns. Held for tens of nanoseconds, never over a
/// system call, a caller's closure (save the time source's) or the release of a value.
///
/// States of the word: 0 free → 1 taken; 1 → 2 taken and somebody may sleep; both → 0.
@usableFromInline
struct MemoryLock: ~Copyable, Sendable {
    @usableFromInline let word = Atomic<UInt32>(0)

    @usableFromInline
    init() {}

    @inlinable
    @inline(__always)
    borrowing func lock() {
        let first = word.compareExchange(
            expected: 0,
            desired: 1,
            successOrdering: .acquiring,
            failureOrdering: .relaxed
        )
        if !first.exchanged { waitForTurn() }
    }

    @inlinable
    @inline(__always)
    borrowing func unlock() {
        if word.exchange(0, ordering: .releasing) == 2 { wakeOne() }
    }

    /// The holder needs a few dozen nanoseconds, so looking again is cheaper than sleeping; but it
    /// may have lost its processor, so looking has an end.
    @usableFromInline
    @inline(never)
    borrowing func waitForTurn() {
        for _ in 0..<64 {
            tc_cpu_relax()
            guard word.load(ordering: .relaxed) == 0 else { continue }
            let taken = word.compareExchange(
                expected: 0,
                desired: 1,
                successOrdering: .acquiring,
                failureOrdering: .relaxed
            )
            if taken.exchanged { return }
        }
        while word.exchange(2, ordering: .acquiring) != 0 {
            withAddress { tc_futex_wait($0, 2) }
        }
    }

    @usableFromInline
    @inline(never)
    borrowing func wakeOne() {
        withAddress { tc_futex_wake($0, 1) }
    }

    private borrowing func withAddress(_ body: (UnsafePointer<UInt32>) -> Void) {
        // An atomic is stored in place and its address is stable; the shard never moves.
        withUnsafePointer(to: word) { pointer in
            body(UnsafeRawPointer(pointer).assumingMemoryBound(to: UInt32.self))
        }
    }
}
#endif
