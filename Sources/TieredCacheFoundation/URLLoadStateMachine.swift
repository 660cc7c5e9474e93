/// Decides when Foundation is told of a load's events.
///
/// States: open → over, which stays; paused and not while open. Performs no call.
struct URLLoadStateMachine {
    private var events: [URLLoadEvent] = []
    private var waiter: CheckedContinuation<Void, Never>?
    private var task: Task<Void, Never>?
    private var isOver = false
    /// Whether Foundation is about to take events: the bell was rung, or the load is being started.
    private var isRung = true
    var isPaused = false

    /// - Returns: the task, if it has to be cancelled.
    mutating func didStart(_ task: Task<Void, Never>) -> Task<Void, Never>? {
        guard !isOver else { return task }
        self.task = task
        return nil
    }

    /// - Returns: whether to ring the bell.
    mutating func add(_ new: [URLLoadEvent]) -> Bool {
        guard !isOver else { return false }
        events += new
        guard !isPaused, !isRung else { return false }
        isRung = true
        return true
    }

    /// - Returns: whether there is nothing to wait for.
    mutating func wait(_ continuation: CheckedContinuation<Void, Never>) -> Bool {
        guard !isOver, !events.isEmpty else { return true }
        waiter = continuation
        return false
    }

    /// Foundation may be told: what has happened, and who waited for that.
    mutating func take() -> ([URLLoadEvent], CheckedContinuation<Void, Never>?) {
        (isPaused, isRung) = (false, false)
        defer { (events, waiter) = ([], nil) }
        return (events, waiter)
    }

    mutating func cancel() -> (Task<Void, Never>?, CheckedContinuation<Void, Never>?) {
        defer { (isOver, events, waiter, task) = (true, [], nil, nil) }
        return (task, waiter)
    }
}
