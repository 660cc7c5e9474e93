import TieredCache
import TieredCacheTesting

extension ManualTimeSource {
    /// Moves the time on by `step` whenever that wakes a task, until `task` has ended.
    ///
    /// A test cannot see which of several tasks sleeps: the one that it waits for may be the next.
    func advance<Success, Failure>(
        by step: Duration,
        until task: Task<Success, Failure>
    ) async -> Result<Success, Failure> {
        let isOver = Guarded(false)
        let watch = Task {
            let result = await task.result
            isOver.withLock { $0 = true }
            return result
        }
        while !isOver.withLock({ $0 }) {
            if let next = timeToNextDeadline, next <= step { advance(by: step) }
            await Task.yield()
        }
        return await watch.value
    }
}
