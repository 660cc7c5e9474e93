/// What a machine knows about its network at one moment.
public struct NetworkStatus: Hashable, Sendable {
    /// Whether there is a way out; nil where nobody knows, which counts as yes.
    public var isOnline: Bool?
    /// Whether bytes cost money; nil where nobody knows, which counts as no.
    public var isMetered: Bool?

    /// Creates a status; by default nothing is known.
    public init(isOnline: Bool? = nil, isMetered: Bool? = nil) {
        self.isOnline = isOnline
        self.isMetered = isMetered
    }
}

/// Something that a network monitor has noticed.
public enum NetworkEvent: Hashable, Sendable {
    /// The status is this from now on.
    case status(NetworkStatus)
    /// The machine has lost this address, in the form `192.0.2.1` or `2001:db8::1`: what was sent
    /// from it will not be answered.
    case lostAddress(String)
}

/// Watches the machine's network.
///
/// What it says are hints: a download that gets through proves it
/// wrong, and a monitor that fails counts as online.
public protocol NetworkMonitor: Sendable {
    /// The events from now on, beginning with the present status; ends where watching fails.
    ///
    /// Watching ends when the consumer's task is cancelled or drops the stream.
    func events() -> AsyncStream<NetworkEvent>
}
