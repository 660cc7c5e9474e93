/// How much and how long a connection may ask of the server.
///
/// There is no limit on how long a client may take to read: players pause for minutes, and what
/// they do not read stays in the cache, not in memory.
public struct ServerLimits: Sendable {
    /// The longest head of a request, by default 32 KiB; longer ones are answered 431.
    public var maximumHeadSize = 32 << 10
    /// The longest request target, by default 16 KiB; longer ones are answered 414.
    public var maximumTargetSize = 16 << 10
    /// How many fields a request may have, by default 100; more are answered 431.
    public var maximumFieldCount = 100
    /// The longest body of a request, by default 1 GiB; longer ones are answered 413.
    public var maximumBodySize: Int64 = 1 << 30
    /// How long a head may take from its first byte to its last, by default 15 s; then 408.
    public var headTimeout: Duration = .seconds(15)
    /// How long the next bytes of a body may take once they are asked for, by default 30 s.
    public var bodyTimeout: Duration = .seconds(30)
    /// How long a connection may stay open without a request, by default 75 s.
    public var idleTimeout: Duration = .seconds(75)
    /// How long the answers under way may take once the server is to stop, by default 2 s.
    public var stopTimeout: Duration = .seconds(2)

    /// Creates limits with the defaults.
    public init() {}
}
