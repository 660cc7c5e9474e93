/// The status of a download job at one time; a value for lists and progress bars.
public struct DownloadStatus: Hashable, Sendable {
    /// The identifier of the job.
    public let id: DownloadID
    /// The URL of the request.
    public let url: String
    /// The state of the job.
    public var state: DownloadState
    /// The priority of the job.
    public var priority: RequestPriority
    /// The number of stored bytes of the representation, as far as the job has seen.
    public var bytes: Int64 = 0
    /// The complete length in bytes; nil until the origin has sent it.
    public var total: Int64?
    /// The bytes among ``bytes`` that were stored before the current run.
    public var bytesFromCache: Int64 = 0
    /// The number of bytes received from the origin, over all runs.
    public var bytesFromOrigin: Int64 = 0
    /// The source of the last of ``bytes``: stored bytes are read first, then missing ones are
    /// fetched; nil before the first byte of the current run.
    public var source: ByteSource?
    /// The rate of the origin in bytes per second, smoothed over some seconds; nil at the
    /// beginning.
    public var bytesPerSecond: Double?
    /// The number of failed attempts, over all runs.
    public var attempts = 0
    /// Whether credentials were lost in a restart; the origin may refuse until
    /// ``DownloadHandle/resume(with:)`` supplies them again.
    public var lacksCredentials = false

    /// The time left at the current rate; nil if length or rate are unknown.
    public var timeLeft: Duration? {
        DownloadProgress(
            offset: bytes,
            completeLength: total,
            bytesReceived: bytesFromOrigin,
            bytesPerSecond: bytesPerSecond
        ).timeLeft
    }

    /// The stored fraction, from 0 to 1; nil while the length is unknown.
    public var fraction: Double? {
        guard let total else { return nil }
        return total > 0 ? min(1, Double(bytes) / Double(total)) : 1
    }
}

// Beside the initializer of all members, which is internal.
extension DownloadStatus {
    package init(id: DownloadID, url: String, state: DownloadState, priority: RequestPriority) {
        self.id = id
        self.url = url
        self.state = state
        self.priority = priority
    }
}
