#if canImport(Glibc)
import Glibc
#elseif canImport(Darwin)
import Darwin
#endif

/// Waits for a lock that another thread holds; a test orders threads by it.
package protocol LockWaiter: Sendable {
    /// Returns once `attempt` has returned true.
    ///
    /// - Parameter attempt: takes the lock if it is free, and says whether it did.
    func wait(until attempt: () -> Bool)
}

/// One holder at a time per key, over system calls that may block.
///
/// For files, which no ``Guarded`` value can stand for. Only calls that may block anyway take it,
/// never a hit. Locks are taken in the order of ``LockOrder``; a debug build traps where they are
/// not.
package final class KeyedLock: @unchecked Sendable {
    // Unchecked: the mutexes are made for use from several threads and never move.
    private static let count = 128
    private let mutexes = UnsafeMutablePointer<pthread_mutex_t>.allocate(capacity: count)
    private let order: LockOrder
    private let waiter: (any LockWaiter)?

    /// Creates the locks of all keys.
    ///
    /// - Parameters:
    ///   - order: where they stand in the order of all locks.
    ///   - waiter: how a thread waits; nil blocks it.
    package init(_ order: LockOrder, waiter: (any LockWaiter)? = nil) {
        self.order = order
        self.waiter = waiter
        for index in 0..<Self.count {
            (mutexes + index).initialize(to: pthread_mutex_t())
            pthread_mutex_init(mutexes + index, nil)
        }
    }

    deinit {
        for index in 0..<Self.count {
            pthread_mutex_destroy(mutexes + index)
        }
        mutexes.deallocate()
    }

    /// Runs `body` while no other body runs for the same key.
    ///
    /// - Parameters:
    ///   - key: different keys may share a lock, so no body may wait for that of another key.
    ///   - body: what needs the lock.
    /// - Returns: what `body` returns.
    /// - Throws: what `body` throws.
    package func withLock<Result, Failure: Error>(
        of key: UInt64 = 0,
        _ body: () throws(Failure) -> Result
    ) throws(Failure) -> Result {
        let mutex = mutexes + Int(key % UInt64(Self.count))
        LockChecker.willTake(.ordered(order))
        take(mutex)
        defer {
            pthread_mutex_unlock(mutex)
            LockChecker.didRelease()
        }
        return try body()
    }

    private func take(_ mutex: UnsafeMutablePointer<pthread_mutex_t>) {
        guard let waiter else {
            pthread_mutex_lock(mutex)
            return
        }
        waiter.wait { pthread_mutex_trylock(mutex) == 0 }
    }
}
