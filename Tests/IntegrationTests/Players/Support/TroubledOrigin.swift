import TieredCacheTesting

extension OriginScript {
    /// An origin that cuts, refuses, drops, stalls, and is slow.
    static let troubled = OriginScript.first(1, .cut(after: 100_000))
        .then(1, .status(503, retryAfter: "1"))
        .then(1, .cut(after: 150_000, .finish))
        .then(1, .dropped())
        .then(1, .stalling(after: 60_000, for: .milliseconds(700)))
        .then(.throttled(bytesPerSecond: 4 << 20))
}

extension OriginBehaviour {
    /// Says nothing for a while when so many body bytes of the response are out.
    fileprivate static func stalling(after bytes: Int64, for time: Duration) -> OriginBehaviour {
        faithful.with { $0.interruptions = [(bytes, .pause(time))] }
    }
}
