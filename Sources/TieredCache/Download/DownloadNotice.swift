/// A step of a download besides receiving bytes, to explain delays to users.
@nonexhaustive
public enum DownloadNotice: Hashable, Sendable {
    /// The download is queued; it starts when a slot is free, which may be at once.
    case queued
    /// A request is sent, for the bytes from `offset`.
    case started(offset: Int64)
    /// An attempt failed and a retry follows.
    case retrying(DownloadRetry)
    /// The machine has no network; the download waits for it and counts no attempt.
    case waitingForNetwork
    /// The representation has changed, or the bytes did not match their digest: the whole is
    /// fetched again.
    case restarted
}

/// A failed attempt that a retry follows.
public struct DownloadRetry: Hashable, Sendable {
    /// The wait before the next attempt.
    public let delay: Duration
    /// The number of attempts in a row that brought no byte.
    public let attempts: Int
    /// The maximum number of such attempts.
    public let maximumAttempts: Int
    /// The failure, in words for people.
    public let reason: String
    /// Whether the next attempt waits for the network rather than for a time.
    public let isForNetwork: Bool

    package init(
        delay: Duration,
        attempts: Int,
        maximumAttempts: Int,
        reason: String,
        isForNetwork: Bool = false
    ) {
        self.delay = delay
        self.attempts = attempts
        self.maximumAttempts = maximumAttempts
        self.reason = reason
        self.isForNetwork = isForNetwork
    }
}
