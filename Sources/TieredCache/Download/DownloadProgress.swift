/// The progress of a download; a value for a progress bar.
///
/// Counts bytes received over the network. For a partially stored body see
/// ``CacheResponse/lastBytesSource`` and ``DownloadStatus/source``.
public struct DownloadProgress: Hashable, Sendable {
    /// The offset after the last byte received.
    public let offset: Int64
    /// The complete length of the representation in bytes; nil if the origin has not sent it.
    public let completeLength: Int64?
    /// The number of body bytes received in this download, including those fetched twice.
    public let bytesReceived: Int64
    /// The rate in bytes per second, smoothed over some seconds; nil at the beginning.
    public let bytesPerSecond: Double?

    /// Creates a value.
    ///
    /// - Parameters:
    ///   - offset: The offset after the last byte received.
    ///   - completeLength: The complete length, if known.
    ///   - bytesReceived: The number of body bytes received in this download.
    ///   - bytesPerSecond: The smoothed rate, if known.
    public init(
        offset: Int64,
        completeLength: Int64?,
        bytesReceived: Int64,
        bytesPerSecond: Double?
    ) {
        self.offset = offset
        self.completeLength = completeLength
        self.bytesReceived = bytesReceived
        self.bytesPerSecond = bytesPerSecond
    }

    /// The time left at the current rate; nil if length or rate are unknown.
    public var timeLeft: Duration? {
        guard let completeLength, let bytesPerSecond, bytesPerSecond >= 1 else { return nil }
        let seconds = Double(max(0, completeLength - offset)) / bytesPerSecond
        // A longer time is of no use, and the conversion stays far from overflow.
        return .milliseconds(Int64(min(seconds, 1e9) * 1000))
    }
}
