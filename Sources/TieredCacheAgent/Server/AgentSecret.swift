package import TieredCache

/// The secret of `token:SECRET`, and how long a client waits that does not know it.
package final class AgentSecret: Sendable {
    private let bytes: [UInt8]
    private let time: any TimeSource
    private let state = Guarded(WrongSecrets())

    /// Creates the guard of a secret, which is not empty.
    package init(_ secret: String, time: any TimeSource) {
        bytes = Array(secret.utf8)
        self.time = time
    }

    /// Whether a token is the secret; takes as long whatever is in it.
    package func allows(_ token: String?) -> Bool {
        guard let token else { return false }
        let given = Array(token.utf8)
        var difference = given.count ^ bytes.count
        for index in bytes.indices {
            difference |= Int(bytes[index] ^ (index < given.count ? given[index] : 0))
        }
        return difference == 0
    }

    /// Waits, as the answer to a call with a wrong secret has to.
    func delay() async {
        let now = time.monotonicTime()
        let wait = state.withLock { $0.delay(now: now) }
        do {
            try await time.sleep(for: wait)
        } catch {
            return  // The client has left.
        }
    }
}

/// When answers to wrong secrets go out: a second after the call at the earliest, and ten a second
/// over all connections.
struct WrongSecrets: Hashable, Sendable {
    static let delay = Duration.seconds(1)
    static let interval = Duration.milliseconds(100)

    private var next: MonotonicTime?

    /// - Returns: how long the answer waits.
    mutating func delay(now: MonotonicTime) -> Duration {
        let earliest = now.advanced(by: Self.delay)
        let due = max(next ?? earliest, earliest)
        next = due.advanced(by: Self.interval)
        return now.duration(to: due)
    }
}
