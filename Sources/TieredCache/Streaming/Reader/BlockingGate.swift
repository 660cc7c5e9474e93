import Dispatch

/// Lets one thread block until a task has a result for it.
///
/// States: `waiting` → `done`; the first result counts.
final class BlockingGate<Value: Sendable>: Sendable {
    private let result = Guarded<Result<Value, CacheError>?>(nil)
    private let semaphore = DispatchSemaphore(value: 0)

    /// Lets the thread go on; ignored after the first time.
    func open(with result: Result<Value, CacheError>) {
        let isFirst = self.result.withLock { known in
            guard known == nil else { return false }
            known = result
            return true
        }
        if isFirst { semaphore.signal() }
    }

    /// Blocks the calling thread until ``open(with:)``; to be called once.
    func wait() throws(CacheError) -> Value {
        semaphore.wait()
        guard let result = result.withLock({ $0 }) else {
            preconditionFailure("signalled without a result")
        }
        return try result.get()
    }
}
