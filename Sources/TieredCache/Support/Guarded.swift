#if THREAD_SANITIZER
import Glibc

/// A value and the lock that guards it.
///
/// The thread sanitizer does not see the futex of `Synchronization.Mutex` and reports races that
/// are not there; in a sanitizer build (`make test-tsan` defines `THREAD_SANITIZER`) the lock is
/// therefore a pthread mutex, which it does see.
package final class Guarded<Value: ~Copyable>: @unchecked Sendable {
    // Unchecked: every access to `value` holds `mutex`.
    private let mutex: UnsafeMutablePointer<pthread_mutex_t>
    private var value: Value
    #if DEBUG
    private let kind: LockChecker.Kind
    #endif

    package init(
        _ value: consuming sending Value,
        file: StaticString = #fileID,
        line: UInt = #line
    ) {
        self.value = value
        #if DEBUG
        kind = .guarded(LockChecker.Place(file: file, line: line))
        #endif
        mutex = .allocate(capacity: 1)
        mutex.initialize(to: pthread_mutex_t())
        pthread_mutex_init(mutex, nil)
    }

    deinit {
        pthread_mutex_destroy(mutex)
        mutex.deallocate()
    }

    package func withLock<Result: ~Copyable, Failure: Error>(
        _ body: (inout sending Value) throws(Failure) -> sending Result
    ) throws(Failure) -> sending Result {
        #if DEBUG
        LockChecker.willTake(kind)
        defer { LockChecker.didRelease() }
        #endif
        pthread_mutex_lock(mutex)
        defer { pthread_mutex_unlock(mutex) }
        return try body(&value)
    }
}
#else
import Synchronization

/// A value and the lock that guards it; decide under it, act after it.
///
/// Never held across a suspension, a system call that may block, or the resumption of a
/// continuation. Of two that are ever held at once, one is always taken first; a debug build traps
/// where that is not so, see ``LockChecker``.
package struct Guarded<Value: ~Copyable>: ~Copyable, Sendable {
    /// Holds the value; never contended on Linux.
    private let mutex: Mutex<Value>
    #if os(Linux)
    private let turn = BargingLock()
    #endif

    #if DEBUG
    private let kind: LockChecker.Kind

    package init(
        _ value: consuming sending Value,
        file: StaticString = #fileID,
        line: UInt = #line
    ) {
        mutex = Mutex(value)
        kind = .guarded(LockChecker.Place(file: file, line: line))
    }
    #else
    package init(_ value: consuming sending Value) {
        mutex = Mutex(value)
    }
    #endif

    @inline(__always)
    package borrowing func withLock<Result: ~Copyable, Failure: Error>(
        _ body: (inout sending Value) throws(Failure) -> sending Result
    ) throws(Failure) -> sending Result {
        #if DEBUG
        LockChecker.willTake(kind)
        defer { LockChecker.didRelease() }
        #endif
        #if os(Linux)
        turn.lock()
        defer { turn.unlock() }
        #endif
        return try mutex.withLock(body)
    }
}
#endif
