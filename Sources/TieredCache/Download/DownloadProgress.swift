/// How far a download has come; a value for a progress bar.
///
/// It counts what comes over the network. A body that is stored in part is told by
/// ``CacheResponse/lastBytesSource`` and ``DownloadStatus/source``.
public struct DownloadProgress: Hashable, Sendable {
    /// The offset after the last byte that arrived.
    public let offset: Int64
    /// The complete length of the representation, or nil where the origin has not said.
    public let completeLength: Int64?
    /// Body bytes that arrived over the network in this download, those fetched twice included.
    public let bytesReceived: Int64
    /// Bytes per second, smoothed over some seconds; nil in the first moments.
    public let bytesPerSecond: Double?

    /// Creates a value.
    ///
    /// - Parameters:
    ///   - offset: The offset after the last byte that arrived.
    ///   - completeLength: The complete length, if known.
    ///   - bytesReceived: Body bytes that arrived in this download.
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

    /// The time left at the present rate; nil where length or rate are unknown or the rate is nil.
    public var timeLeft: Duration? {
        guard let completeLength, let bytesPerSecond, bytesPerSecond >= 1 else { return nil }
        let seconds = Double(max(0, completeLength - offset)) / bytesPerSecond
        // Beyond that nobody waits, and the conversion stays far from overflow.
        return .milliseconds(Int64(min(seconds, 1e9) * 1000))
    }
}
