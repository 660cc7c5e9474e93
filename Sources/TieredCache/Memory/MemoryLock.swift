#if !os(Linux)
#if canImport(Darwin)
import Darwin
#endif

/// The lock of a shard on a platform without futexes.
@usableFromInline
struct MemoryLock: ~Copyable, @unchecked Sendable {
    // Unchecked: a pthread mutex is made to be shared; the pointer never changes.
    private let mutex: UnsafeMutablePointer<pthread_mutex_t>

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

    @usableFromInline
    borrowing func lock() {
        #if DEBUG
        Self.willTake()
        #endif
        pthread_mutex_lock(mutex)
    }

    @usableFromInline
    borrowing func unlock() {
        pthread_mutex_unlock(mutex)
        #if DEBUG
        Self.didRelease()
        #endif
    }
}
#else
import CLinuxCalls
public import Synchronization

/// The lock of a shard: a word that is taken and given back inline, and a futex for threads that
/// wait.
///
/// Giving back is a plain store. A lock that keeps in its word whether a thread sleeps, as a
/// pthread mutex and `Synchronization.Mutex` do, exchanges the word instead, and that waits until
/// all stores of the holder have left the processor's store buffer, including the stamp of an entry
/// whose cache line is still on its way. Measured for one hold with one such store: 3.6 ns with a
/// plain store, 6.1 with an exchange, 5.7 with a pthread mutex, of the 55 ns that a hit takes.
///
/// The price: between the store and the load of `sleepers` a thread may have begun to sleep unseen.
/// So a sleeper looks again after at most a millisecond. Threads sleep only if the holder lost its
/// processor: the lock is held for tens of nanoseconds, never over a system call, an application's
/// closure (save the time source's) or the release of a value. A debug build traps where what runs
/// under it takes the lock of a shard again, or locks in two orders, see ``LockChecker``.
///
/// Other values have a ``BargingLock``: 30 ns in the place of 20 where one thread takes it, and
/// three times as many turns where sixteen do.
@usableFromInline
struct MemoryLock: ~Copyable, Sendable {
    /// 0 free, 1 taken.
    @usableFromInline let word = Atomic<UInt32>(0)
    @usableFromInline let sleepers = Atomic<UInt32>(0)

    @usableFromInline
    init() {}

    @inlinable
    @inline(__always)
    borrowing func lock() {
        #if DEBUG
        Self.willTake()
        #endif
        if !tryLock() { waitForTurn() }
    }

    @inlinable
    @inline(__always)
    borrowing func unlock() {
        word.store(0, ordering: .releasing)
        if sleepers.load(ordering: .relaxed) != 0 { wakeOne() }
        #if DEBUG
        Self.didRelease()
        #endif
    }

    @inlinable
    @inline(__always)
    borrowing func tryLock() -> Bool {
        word.compareExchange(
            expected: 0,
            desired: 1,
            successOrdering: .acquiring,
            failureOrdering: .relaxed
        ).exchanged
    }

    /// The holder needs a few dozen nanoseconds, so looking again is cheaper than sleeping; but it
    /// may have lost its processor, so looking has an end.
    @usableFromInline
    @inline(never)
    borrowing func waitForTurn() {
        while true {
            for _ in 0..<64 {
                tc_cpu_relax()
                if word.load(ordering: .relaxed) == 0, tryLock() { return }
            }
            sleepers.wrappingAdd(1, ordering: .sequentiallyConsistent)
            withAddress { tc_futex_wait_for($0, 1, 1_000_000) }
            sleepers.wrappingSubtract(1, ordering: .relaxed)
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

#if DEBUG
extension MemoryLock {
    /// One for all shards: no thread holds the locks of two.
    private static let kind = LockChecker.Kind.guarded(
        LockChecker.Place(file: #fileID, line: #line)
    )

    @usableFromInline
    static func willTake() { LockChecker.willTake(kind) }

    @usableFromInline
    static func didRelease() { LockChecker.didRelease() }
}
#endif
