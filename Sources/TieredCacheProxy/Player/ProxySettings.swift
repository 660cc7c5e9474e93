public import Logging
public import TieredCache

/// The settings of a proxy, in addition to the configuration of its cache.
public struct ProxySettings: Sendable {
    /// The port on 127.0.0.1; nil for the port of the last run, or a free one.
    public var port: Int?
    /// The secret in the path of proxied URLs; nil for the token of the last run, or a random one.
    public var token: String?
    /// The time limit for the first byte of a response, by default 30 s; then 502 or 504 is sent.
    public var originTimeout: Duration = .seconds(30)
    /// The time limit for the next byte of a response that has begun; then it is cut off.
    ///
    /// By default 30 s. Requests to the origin are retried meanwhile.
    public var stallTimeout: Duration = .seconds(30)
    /// How long a request continues after its client has disconnected before the response began, by
    /// default 1.5 s.
    ///
    /// A transfer that has already delivered bytes continues for two seconds and at most 1 MiB.
    public var lingerTime: Duration = .milliseconds(1500)
    /// How long an origin may take to request the body of an `Expect: 100-continue` request, by
    /// default 1 s.
    ///
    /// Then the body is sent without a 100 response (RFC 9110 §10.1.1).
    public var continueTimeout: Duration = .seconds(1)
    /// Further values of `Host` that a reverse proxy accepts, beside loopback names, its origin,
    /// and reserved names that cannot be registered; `*` allows all.
    public var hosts: [String] = []
    /// The rules for hosts of a player proxy, by default none; ``PlayerProxy/setRules(_:)``
    /// replaces them.
    ///
    /// They hold for what a player asks for and for all that playlists name. A playlist's URLs of
    /// an excluded host do not lead through the proxy, and a request for one is redirected to the
    /// host.
    public var rules = HostRules()
    /// Whether a player proxy sends origins more fields of players than `Authorization` and
    /// `Cookie`, by default false: `Referer`, `User-Agent`, and all others that a server may look
    /// at.
    ///
    /// Players that send different fields share no transfer. Of a browser no more is sent.
    public var relaysPlayerFields = false
    /// The limits for requests and connections of clients.
    public var limits = ServerLimits()
    /// The most connections of clients; nil for as many as there are descriptors.
    package var maximumConnections: Int?
    /// The logger; by default messages are dropped.
    public var logger = Logger(label: "tieredcache.proxy") { _ in SwiftLogNoOpLogHandler() }
    /// The name in `Via` by which the proxy detects requests that it has sent itself.
    package var pseudonym = Intermediary.Pseudonym()
    /// The clock.
    public var timeSource: any TimeSource = SystemTimeSource()

    /// Creates settings with the defaults.
    public init() {}
}
