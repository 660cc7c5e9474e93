/// The state of a machine's network at one time.
public struct NetworkStatus: Hashable, Sendable {
    /// Whether the machine is online; nil if unknown, which counts as online.
    public var isOnline: Bool?
    /// Whether the network has costs per byte; nil if unknown, which counts as no.
    public var isMetered: Bool?

    /// Creates a status; by default nothing is known.
    public init(isOnline: Bool? = nil, isMetered: Bool? = nil) {
        self.isOnline = isOnline
        self.isMetered = isMetered
    }
}

/// An observation of a network monitor.
public enum NetworkEvent: Hashable, Sendable {
    /// The new status.
    case status(NetworkStatus)
    /// The machine has lost this address, in the form `192.0.2.1` or `2001:db8::1`: requests sent
    /// from it will get no response.
    case lostAddress(String)
}

/// Watches the machine's network.
///
/// Its events are hints: a download that succeeds overrides them, and a monitor that fails counts
/// as online.
public protocol NetworkMonitor: Sendable {
    /// The events from now on, beginning with the current status; ends if watching fails.
    ///
    /// Watching ends when the consumer's task is cancelled or drops the stream.
    func events() -> AsyncStream<NetworkEvent>
}
