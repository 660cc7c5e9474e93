package import TieredCache

/// Decides when an agent has had nothing to do for long enough to leave.
package struct IdleWatch: Hashable, Sendable {
    private let limit: Duration
    private var since: MonotonicTime
    private var clients = 0

    /// - Parameters:
    ///   - limit: how long it waits.
    ///   - now: when it begins.
    package init(after limit: Duration, now: MonotonicTime) {
        self.limit = limit
        since = now
    }

    /// Takes what there is at an instant.
    ///
    /// - Parameters:
    ///   - isBusy: whether a download runs, or would without a command, or a client is connected.
    ///   - clients: how many connections there ever were: one may have come and gone.
    ///   - now: the instant.
    /// - Returns: whether to leave.
    package mutating func observe(isBusy: Bool, clients: Int, now: MonotonicTime) -> Bool {
        if isBusy || clients != self.clients {
            since = now
            self.clients = clients
        }
        return since.duration(to: now) >= limit
    }
}
