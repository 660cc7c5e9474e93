#if DEBUG
import Synchronization

#if canImport(Glibc)
import Glibc
#elseif canImport(Darwin)
import Darwin
#endif

/// Traps where a thread takes locks in an order that could let two threads wait for each other, and
/// where one waits for a disk that must not.
///
/// Records the locks that each thread holds. Locks held over blocking calls have the fixed order of
/// ``LockOrder``. Of ``Guarded`` values, each created at one place in the source, it remembers
/// which was ever taken while another was held, and refuses the opposite order, even if no two
/// threads met. Exists in debug builds alone.
package enum LockChecker {
    /// A kind of lock.
    package enum Kind: Hashable, Sendable {
        case ordered(LockOrder)
        case guarded(Place)
    }

    /// Where in the source a ``Guarded`` value is created.
    package struct Place: Hashable, Sendable, CustomStringConvertible {
        let file: StaticString
        let line: UInt

        package var description: String { "\(file):\(line)" }

        package static func == (left: Self, right: Self) -> Bool {
            // By address: `#fileID` is one constant per file, and comparing texts would cost at
            // each lock.
            left.file.utf8Start == right.file.utf8Start && left.line == right.line
        }

        package func hash(into hasher: inout Hasher) {
            hasher.combine(file.utf8Start)
            hasher.combine(line)
        }
    }

    /// Is told of each lock that a thread takes, and must take none: the name of the file where its
    /// value is created, and the line; nil and the raw value for one of ``LockOrder``.
    package typealias Observer = @convention(c) (UnsafePointer<UInt8>?, UInt) -> Void

    /// The address of an ``Observer``; 0 for none.
    private static let observer = Atomic<UInt>(0)

    /// Tells `observer`, of a test that counts, of all locks from now on; nil of none.
    package static func observe(by observer: Observer?) {
        let address = observer.map { unsafeBitCast($0, to: UInt.self) }
        self.observer.store(address ?? 0, ordering: .releasing)
    }

    private static func tellObserver(of kind: Kind) {
        let address = observer.load(ordering: .acquiring)
        guard address != 0 else { return }
        let observer = unsafeBitCast(address, to: Observer.self)
        switch kind {
        case .ordered(let order): observer(nil, UInt(order.rawValue))
        case .guarded(let place): observer(place.file.utf8Start, place.line)
        }
    }

    /// Registers that the calling thread is about to take a lock; ``didRelease()`` has to follow.
    package static func willTake(_ kind: Kind) {
        let held = HeldLocks.ofThisThread
        let violation =
            switch kind {
            case .ordered(let order): held.violationOfFixedOrder(order)
            case .guarded: LockHistory.shared.violation(taking: kind, holding: held.kinds)
            }
        if let violation { fatalError(violation) }
        held.kinds.append(kind)
        tellObserver(of: kind)
    }

    /// Registers that the calling thread released the lock that it took last.
    package static func didRelease() {
        HeldLocks.ofThisThread.kinds.removeLast()
    }

    /// Traps unless the calling thread may take a lock now, whether it comes to that or not.
    package static func assertMayTake(_ order: LockOrder) {
        let held = HeldLocks.ofThisThread
        if let violation = held.violationOfFixedOrder(order) { fatalError(violation) }
    }

    /// Traps where the calling thread holds the lock of a value that was created in a file whose
    /// name begins so; for system calls, which may take long.
    package static func assertHoldsNone(ofFiles prefix: StaticString) {
        for case .guarded(let place) in HeldLocks.ofThisThread.kinds
        where place.description.hasPrefix(prefix.description) {
            fatalError("a system call is made while \(place) is held")
        }
    }

    /// Traps where the calling thread holds the lock of a ``Guarded`` value; for what resumes or
    /// cancels tasks.
    ///
    /// Both take the lock of the task, and a cancelled task holds it while its handlers run.
    package static func assertHoldsNoValue() {
        for case .guarded(let place) in HeldLocks.ofThisThread.kinds {
            fatalError("a task is resumed or cancelled while \(place) is held")
        }
    }

    /// Runs `body`, which must not block: a lock of ``LockOrder`` that it takes is a trap, and so is
    /// a call of the file system, but one that looks at an open file.
    ///
    /// - Parameters:
    ///   - reason: why what it does is over at once.
    ///   - body: the calls.
    /// - Returns: what `body` returns.
    package static func withoutBlocking<Result>(
        _ reason: StaticString,
        _ body: () -> Result
    ) -> Result {
        let held = HeldLocks.ofThisThread
        held.nonBlockingCalls += 1
        defer { held.nonBlockingCalls -= 1 }
        return body()
    }

    /// Runs `body`, in which the calling thread may wait for a disk.
    ///
    /// - Parameters:
    ///   - reason: why nobody else waits for the thread.
    ///   - body: the calls.
    /// - Returns: what `body` returns.
    /// - Throws: what `body` throws.
    package static func withBlocking<Result, Failure: Error>(
        _ reason: StaticString,
        _ body: () throws(Failure) -> Result
    ) throws(Failure) -> Result {
        let held = HeldLocks.ofThisThread
        held.blockingCalls += 1
        defer { held.blockingCalls -= 1 }
        return try body()
    }

    /// Traps where the calling thread must not wait for a disk (invariant 7): on each one but those
    /// of an ``IOExecutor``, and outside of ``withBlocking(_:_:)``.
    package static func assertMayBlock() {
        let held = HeldLocks.ofThisThread
        if held.nonBlockingCalls > 0 { fatalError("a call waits for the disk where nothing may") }
        if IOExecutor.hasCurrentThread || held.blockingCalls > 0 || IOExecutor.hasCurrentJob {
            return
        }
        fatalError("a thread waits for the disk that others wait for")
    }

    /// The same for a call on an open file that waits for a disk only now and then: it may be made
    /// within ``withoutBlocking(_:_:)`` as well.
    package static func assertMayLook() {
        if HeldLocks.ofThisThread.nonBlockingCalls == 0 { assertMayBlock() }
    }
}

/// What one thread holds, in the order in which it was taken.
private final class HeldLocks {
    var kinds: [LockChecker.Kind] = []
    /// How many calls that must not block are under way, each within the one before.
    var nonBlockingCalls = 0
    /// The same of those that may.
    var blockingCalls = 0

    private static let key: pthread_key_t = {
        var key = pthread_key_t()
        // A key of pthreads: Swift has no thread-local storage.
        let result = pthread_key_create(&key) { value in
            #if canImport(Glibc)
            guard let value else { return }
            #endif
            Unmanaged<HeldLocks>.fromOpaque(value).release()
        }
        precondition(result == 0, "no key for what a thread holds: errno \(result)")
        return key
    }()

    static var ofThisThread: HeldLocks {
        if let known = pthread_getspecific(key) {
            return Unmanaged<HeldLocks>.fromOpaque(known).takeUnretainedValue()
        }
        let new = HeldLocks()
        pthread_setspecific(key, Unmanaged.passRetained(new).toOpaque())
        return new
    }

    func violationOfFixedOrder(_ wanted: LockOrder) -> String? {
        if nonBlockingCalls > 0 {
            return "\(wanted), which may wait for the disk, is taken while nothing may block"
        }
        for other in kinds {
            switch other {
            case .guarded:
                return "\(wanted), which may wait for the disk, is taken while \(other) is held"
            case .ordered(let order) where order.rawValue >= wanted.rawValue:
                return "\(wanted) is taken while \(other) is held, against the order of locks"
            case .ordered:
                continue
            }
        }
        return nil
    }
}

/// Which lock was ever taken while which other was held.
private final class LockHistory: @unchecked Sendable {
    // Unchecked: `later` is only touched while `mutex` is held. Not a `Guarded` value, which it
    // checks.
    static let shared = LockHistory()
    private let mutex = UnsafeMutablePointer<pthread_mutex_t>.allocate(capacity: 1)
    private var later: [LockChecker.Kind: Set<LockChecker.Kind>] = [:]

    init() {
        mutex.initialize(to: pthread_mutex_t())
        pthread_mutex_init(mutex, nil)
    }

    deinit {
        pthread_mutex_destroy(mutex)
        mutex.deallocate()
    }

    /// Records the order, or returns why it is not allowed.
    func violation(taking kind: LockChecker.Kind, holding held: [LockChecker.Kind]) -> String? {
        // What is held beneath the last one is in the history already, one step below the other.
        guard let last = held.last, case .guarded = last else { return nil }
        pthread_mutex_lock(mutex)
        defer { pthread_mutex_unlock(mutex) }
        if kind == last || isReachable(last, from: kind) {
            return "\(kind) is taken while \(last) is held, and elsewhere the other way round"
        }
        later[last, default: []].insert(kind)
        return nil
    }

    private func isReachable(_ target: LockChecker.Kind, from start: LockChecker.Kind) -> Bool {
        var seen: Set<LockChecker.Kind> = []
        var rest = [start]
        while let next = rest.popLast() {
            if next == target { return true }
            if seen.insert(next).inserted { rest += later[next] ?? [] }
        }
        return false
    }
}
#else
/// Checks nothing in a release build.
package enum LockChecker {
    package enum Kind { case ordered(LockOrder) }

    @inline(__always)
    package static func willTake(_ kind: Kind) {}

    @inline(__always)
    package static func didRelease() {}

    @inline(__always)
    package static func assertMayTake(_ order: LockOrder) {}

    @inline(__always)
    package static func assertHoldsNone(ofFiles prefix: StaticString) {}
    @inline(__always)
    package static func assertHoldsNoValue() {}

    @inline(__always)
    package static func withoutBlocking<Result>(
        _ reason: StaticString,
        _ body: () -> Result
    ) -> Result { body() }

    @inline(__always)
    package static func withBlocking<Result, Failure: Error>(
        _ reason: StaticString,
        _ body: () throws(Failure) -> Result
    ) throws(Failure) -> Result { try body() }

    @inline(__always)
    package static func assertMayBlock() {}

    @inline(__always)
    package static func assertMayLook() {}
}
#endif
