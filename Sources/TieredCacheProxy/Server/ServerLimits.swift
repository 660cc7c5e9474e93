/// The limits for requests and connections of a server.
///
/// A client may take any time to read: players pause for minutes, and unread bytes stay in the
/// cache, not in memory.
public struct ServerLimits: Sendable {
    /// The longest head of a request, by default 32 KiB; a longer one gets 431.
    public var maximumHeadSize = 32 << 10
    /// The longest request target, by default 16 KiB; a longer one gets 414.
    public var maximumTargetSize = 16 << 10
    /// The most fields of a request, by default 100; more get 431.
    public var maximumFieldCount = 100
    /// The longest body of a request, by default 1 GiB; a longer one gets 413.
    public var maximumBodySize: Int64 = 1 << 30
    /// The time limit for a head from its first byte to its last, by default 15 s; then 408 is
    /// sent.
    public var headTimeout: Duration = .seconds(15)
    /// The time limit for the next bytes of a request's body, by default 30 s; then 408 is sent.
    public var bodyTimeout: Duration = .seconds(30)
    /// The time limit for an idle connection, by default 75 s; then it is closed.
    public var idleTimeout: Duration = .seconds(75)
    /// The time limit for responses in progress when the server stops, by default 2 s.
    public var stopTimeout: Duration = .seconds(2)

    /// Creates limits with the defaults.
    public init() {}
}
