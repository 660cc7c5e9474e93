/// How a download job is doing at one moment; a value for lists and progress bars.
public struct DownloadStatus: Hashable, Sendable {
    /// The job.
    public let id: DownloadID
    /// What is fetched.
    public let url: String
    /// What it is doing, or why it does nothing.
    public var state: DownloadState
    /// How urgent it is.
    public var priority: RequestPriority
    /// Bytes of the representation that are stored, as far as the job has seen.
    public var bytes: Int64 = 0
    /// The complete length; nil while the origin has not told.
    public var total: Int64?
    /// Of ``bytes``, those that were stored before the present run looked.
    public var bytesFromCache: Int64 = 0
    /// Bytes that came from the origin, over all runs.
    public var bytesFromOrigin: Int64 = 0
    /// Where the last of ``bytes`` came from: stored bytes come first, then those that are fetched;
    /// nil before the first byte of the present run.
    public var source: ByteSource?
    /// Bytes per second from the origin, smoothed over some seconds; nil in the first moments.
    public var bytesPerSecond: Double?
    /// Attempts that failed, over all runs.
    public var attempts = 0
    /// Whether credentials were not kept over a restart; the origin may refuse until
    /// ``DownloadHandle/resume(with:)`` brings them again.
    public var lacksCredentials = false

    /// The time left at the present rate; nil where length or rate are unknown.
    public var timeLeft: Duration? {
        DownloadProgress(
            offset: bytes,
            completeLength: total,
            bytesReceived: bytesFromOrigin,
            bytesPerSecond: bytesPerSecond
        ).timeLeft
    }

    /// The part that is stored, from 0 to 1; nil while the length is unknown.
    public var fraction: Double? {
        guard let total else { return nil }
        return total > 0 ? min(1, Double(bytes) / Double(total)) : 1
    }
}
