public import Logging
public import TieredCache

/// How a proxy behaves beside what its cache is configured to do.
public struct ProxySettings: Sendable {
    /// The port on 127.0.0.1; nil for the one that was used before, or a free one.
    public var port: Int?
    /// What a proxied URL must begin with; nil for the one that was used before, or a random one.
    public var token: String?
    /// How long the first byte of an answer may take before it is 502 or 504, by default 30 s.
    public var originTimeout: Duration = .seconds(30)
    /// How long an answer that has begun may wait for its next byte before it is cut.
    ///
    /// By default 30 s; the origin is asked again and again meanwhile.
    public var stallTimeout: Duration = .seconds(30)
    /// How long a request goes on whose client has left before its answer began, by default 1.5 s.
    ///
    /// A transfer whose bytes were on their way already goes on for two seconds and at most 1 MiB.
    public var lingerTime: Duration = .milliseconds(1500)
    /// How long an origin may take to ask for the body of a client that waits for that, by default
    /// 1 s.
    ///
    /// Then the body is sent unasked (`Expect: 100-continue`, RFC 9110 §10.1.1).
    public var continueTimeout: Duration = .seconds(1)
    /// Further names by which a reverse proxy may be asked, beside loopback's, its origin's, and
    /// those that nobody can register; `*` allows all.
    public var hosts: [String] = []
    /// How much and how long a client may ask.
    public var limits = ServerLimits()
    /// How many clients may be connected; nil for as many as there are descriptors.
    package var maximumConnections: Int?
    /// Where log messages go; nowhere by default.
    public var logger = Logger(label: "tieredcache.proxy") { _ in SwiftLogNoOpLogHandler() }
    /// By which the proxy knows requests that its own have led to.
    package var pseudonym = Intermediary.Pseudonym()
    /// Where time comes from.
    public var timeSource: any TimeSource = SystemTimeSource()

    /// Creates settings with the defaults.
    public init() {}
}
