import NIOCore

/// A deadline that can be moved without the cost of scheduling a new task.
///
/// Confined to the event loop of one connection. The scheduled task checks the deadline when it
/// fires.
final class ConnectionTimer {
    private enum Deadline {
        case none
        case idle(NIODeadline)
        case running(NIODeadline)

        var time: NIODeadline? {
            switch self {
            case .none: nil
            case .idle(let time), .running(let time): time
            }
        }
    }

    private let eventLoop: any EventLoop
    private let action: () -> Void
    private var deadline = Deadline.none
    private var task: Scheduled<Void>?
    private var taskTime = NIODeadline.distantFuture

    init(eventLoop: any EventLoop, action: @escaping () -> Void) {
        self.eventLoop = eventLoop
        self.action = action
    }

    /// Sets the deadline, whatever it was; a later ``startUnlessRunning(_:)`` replaces it.
    func start(_ duration: Duration) {
        let time = eventLoop.now + TimeAmount(duration)
        deadline = .idle(time)
        watch(time)
    }

    /// Sets a deadline that stays until it is stopped.
    func startUnlessRunning(_ duration: Duration) {
        if case .running = deadline { return }
        let time = eventLoop.now + TimeAmount(duration)
        deadline = .running(time)
        watch(time)
    }

    /// Removes the deadline.
    func stop() {
        deadline = .none
    }

    /// Removes the deadline and cancels the scheduled task.
    func cancel() {
        deadline = .none
        task?.cancel()
        task = nil
    }

    private func watch(_ time: NIODeadline) {
        guard task == nil || time < taskTime else { return }
        task?.cancel()
        taskTime = time
        let bound = NIOLoopBound(self, eventLoop: eventLoop)
        task = eventLoop.scheduleTask(deadline: time) { bound.value.look() }
    }

    private func look() {
        task = nil
        guard let time = deadline.time else { return }
        guard time <= eventLoop.now else { return watch(time) }
        deadline = .none
        action()
    }
}
