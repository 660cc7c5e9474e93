import Dispatch

/// Blocks one thread until a task has a result for it.
///
/// States: `waiting` → `done`; the first result counts.
package final class BlockingGate<Value: Sendable>: Sendable {
    private let result = Guarded<Result<Value, CacheError>?>(nil)
    private let semaphore = DispatchSemaphore(value: 0)

    package init() {}

    /// Whether it has a result.
    package var isOpen: Bool { result.withLock { $0 != nil } }

    /// Sets the result and wakes the thread; ignored after the first call.
    package func open(with result: Result<Value, CacheError>) {
        let isFirst = self.result.withLock { known in
            guard known == nil else { return false }
            known = result
            return true
        }
        if isFirst { semaphore.signal() }
    }

    /// Blocks the calling thread until ``open(with:)``; call it once.
    package func wait() throws(CacheError) -> Value {
        semaphore.wait()
        guard let result = result.withLock({ $0 }) else {
            preconditionFailure("signalled without a result")
        }
        return try result.get()
    }
}
