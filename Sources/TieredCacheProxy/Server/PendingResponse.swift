import NIOCore
import TieredCache

/// A response of stored bytes that the event loop sends piece by piece, as the client takes them.
///
/// Only the piece that is being written is in memory.
struct PendingResponse: Sendable {
    var head: ResponseHead
    let bytes: StoredBytes
    /// The range of ``bytes`` to send.
    let range: Range<Int64>
    /// Continues from an offset where the loop would have to wait for the disk, and ends the
    /// response.
    let goOn: @Sendable (_ offset: Int64, ResponseWriter) async -> Void

    /// Shorter pieces are copied, which costs less than two system calls.
    static let minimumLeased: Int64 = 32 << 10
    /// The most bytes copied at once: the memory that a client which does not read occupies.
    static let maximumCopied: Int64 = 64 << 10
    /// The most bytes given to the kernel at once.
    static let maximumLeased: Int64 = 1 << 20
    /// The most bytes copied for a socket that has taken what it can from a file: they wait in the
    /// channel, which tells when the socket takes more.
    static let probe: Int64 = 16 << 10

    /// Sends the piece at an offset from its file.
    ///
    /// - Returns: what `send` returns; nil where it must be copied.
    func lease<Result>(at offset: Int64, send: (LeasedBytes) -> Result) -> Result? {
        let count = range.upperBound - offset
        guard count >= Self.minimumLeased else { return nil }
        return bytes.lease(offset..<offset + min(count, Self.maximumLeased), send: send)
    }

    /// A copy of the piece at an offset; nil where reading would block on the disk.
    func copy(
        at offset: Int64,
        atMost count: Int64 = maximumCopied,
        on channel: any Channel
    ) -> ByteBuffer? {
        let wanted = Int(min(range.upperBound - offset, count))
        var buffer = channel.allocator.buffer(capacity: wanted)
        let copied = buffer.writeWithUnsafeMutableBytes(minimumWritableBytes: wanted) { room in
            bytes.copy(at: offset, into: UnsafeMutableRawBufferPointer(rebasing: room[..<wanted]))
        }
        return copied > 0 ? buffer : nil
    }
}
