import SystemPackage

#if canImport(Glibc)
import Glibc
#elseif canImport(Darwin)
import Darwin
#endif

/// Where calls of a slow disk wait while it is shut.
final class DiskGate: @unchecked Sendable {
    // Unchecked: the condition variable guards what changes, and never moves.
    private let mutex = UnsafeMutablePointer<pthread_mutex_t>.allocate(capacity: 1)
    private let condition = UnsafeMutablePointer<pthread_cond_t>.allocate(capacity: 1)
    private var isShut = false
    private var waiting = 0
    private var threads: Set<String> = []
    private let continuation: AsyncStream<Int>.Continuation
    /// How many wait, each time one more does.
    let arrivals: AsyncStream<Int>

    init() {
        (arrivals, continuation) = AsyncStream.makeStream(of: Int.self)
        mutex.initialize(to: pthread_mutex_t())
        condition.initialize(to: pthread_cond_t())
        pthread_mutex_init(mutex, nil)
        pthread_cond_init(condition, nil)
    }

    deinit {
        pthread_cond_destroy(condition)
        pthread_mutex_destroy(mutex)
        condition.deallocate()
        mutex.deallocate()
    }

    private func locked<Value>(_ body: () -> Value) -> Value {
        pthread_mutex_lock(mutex)
        defer { pthread_mutex_unlock(mutex) }
        return body()
    }

    /// The names of the threads that ever waited.
    var waiters: Set<String> { locked { threads } }

    func shut() { locked { isShut = true } }

    func open() {
        locked { isShut = false }
        pthread_cond_broadcast(condition)
    }

    func pass() {
        locked {
            guard isShut else { return }
            waiting += 1
            threads.insert(Self.threadName)
            continuation.yield(waiting)
            while isShut { pthread_cond_wait(condition, mutex) }
            waiting -= 1
        }
    }

    private static var threadName: String {
        var name = [UInt8](repeating: 0, count: 64)
        guard let file = try? FileDescriptor.open("/proc/thread-self/comm", .readOnly),
            let count = try? file.closeAfter({
                try name.withUnsafeMutableBytes { try file.read(into: $0) }
            })
        else { return "unknown" }
        return String(decoding: name[..<count], as: UTF8.self)
    }
}
