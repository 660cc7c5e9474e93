import Synchronization

/// A value and the lock that guards it; decide under it, act after it.
///
/// Never held across a suspension, a system call that may block, or the resumption of a
/// continuation. Of two that are ever held at once, one is always taken first; a debug build traps
/// where that is not so, see ``LockChecker``.
package struct Guarded<Value: ~Copyable>: ~Copyable, @unchecked Sendable {
    // Unchecked: every access to `value` holds `lock`. A `Mutex` in the place of the cell would be
    // a second lock, of 13 ns, whose futex the thread sanitizer does not see.
    // The value comes first: the thread sanitizer takes an access to it for one to the first field,
    // and the lock there for a race.
    private let value: _Cell<Value>
    private let lock = BargingLock()

    #if DEBUG
    private let kind: LockChecker.Kind

    package init(
        _ value: consuming sending Value,
        file: StaticString = #fileID,
        line: UInt = #line
    ) {
        self.value = _Cell(value)
        kind = .guarded(LockChecker.Place(file: file, line: line))
    }
    #else
    package init(_ value: consuming sending Value) {
        self.value = _Cell(value)
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
        lock.lock()
        defer { lock.unlock() }
        return try body(&value._address.pointee)
    }
}
