/// Something that a download does besides bringing bytes; for people who wonder why it takes long.
@nonexhaustive
public enum DownloadNotice: Hashable, Sendable {
    /// The download is in the queue, and starts when a slot is free, which may be at once.
    case queued
    /// A request goes out, for the bytes from `offset` on.
    case started(offset: Int64)
    /// An attempt failed and another follows.
    case retrying(DownloadRetry)
    /// The machine has no network; the download waits for it and spends no attempt.
    case waitingForNetwork
    /// The origin has another representation, or the bytes were not what they should be: all of
    /// it is fetched again.
    case restarted
}

/// An attempt that failed and will be followed by another.
public struct DownloadRetry: Hashable, Sendable {
    /// The wait before the next attempt.
    public let delay: Duration
    /// How many attempts in a row brought no byte.
    public let attempts: Int
    /// How many are allowed.
    public let maximumAttempts: Int
    /// What failed, in words for people.
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
