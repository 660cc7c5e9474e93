import NIOCore

/// Ends a connection that nothing has used for a minute.
///
/// A timer looks once in a while, so that a request costs none.
struct Idleness {
    /// How long a connection may be idle.
    ///
    /// Most servers close theirs later, and a request on one that they close at that moment is
    /// lost.
    static let limit = TimeAmount.seconds(60)

    private var since: NIODeadline?
    private var timer: Scheduled<Void>?

    /// The connection has become idle.
    mutating func begin(on eventLoop: any EventLoop, look: @escaping @Sendable () -> Void) {
        since = eventLoop.now
        if timer == nil { timer = eventLoop.scheduleTask(in: Self.limit, look) }
    }

    /// Handles the timer.
    ///
    /// - Returns: whether the connection has been idle for long enough; otherwise the timer is set
    ///   again where it is needed.
    mutating func look(
        isIdle: Bool,
        on eventLoop: any EventLoop,
        look: @escaping @Sendable () -> Void
    ) -> Bool {
        timer = nil
        guard isIdle, let since else { return false }
        let end = since + Self.limit
        guard end > eventLoop.now else { return true }
        timer = eventLoop.scheduleTask(deadline: end, look)
        return false
    }

    mutating func end() {
        timer?.cancel()
        timer = nil
    }
}
