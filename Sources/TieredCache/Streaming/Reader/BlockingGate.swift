import Dispatch

/// Blocks one thread until a task has a result for it.
///
/// States: `waiting` → `done`; the first result counts.
final class BlockingGate<Value: Sendable>: Sendable {
    private let result = Guarded<Result<Value, CacheError>?>(nil)
    private let semaphore = DispatchSemaphore(value: 0)

    /// Sets the result and wakes the thread; ignored after the first call.
    func open(with result: Result<Value, CacheError>) {
        let isFirst = self.result.withLock { known in
            guard known == nil else { return false }
            known = result
            return true
        }
        if isFirst { semaphore.signal() }
    }

    /// Blocks the calling thread until ``open(with:)``; call it once.
    func wait() throws(CacheError) -> Value {
        semaphore.wait()
        guard let result = result.withLock({ $0 }) else {
            preconditionFailure("signalled without a result")
        }
        return try result.get()
    }
}
