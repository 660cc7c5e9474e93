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

    /// The next bytes to write.
    enum Piece {
        case copied(ByteBuffer)
        case leased(LeasedBytes)
    }

    /// Shorter pieces are copied, which costs less than two system calls.
    static let minimumLeased: Int64 = 32 << 10
    /// The most bytes copied at once: the memory that a client which does not read occupies.
    static let maximumCopied: Int64 = 64 << 10
    /// The most bytes given to the kernel at once.
    static let maximumLeased: Int64 = 1 << 20

    /// The piece at an offset; nil where reading would block on the disk.
    func piece(at offset: Int64, allocator: ByteBufferAllocator) -> Piece? {
        let count = range.upperBound - offset
        if count >= Self.minimumLeased,
            let leased = bytes.lease(offset..<offset + min(count, Self.maximumLeased))
        {
            return .leased(leased)
        }
        let wanted = Int(min(count, Self.maximumCopied))
        var buffer = allocator.buffer(capacity: wanted)
        let copied = buffer.writeWithUnsafeMutableBytes(minimumWritableBytes: wanted) { room in
            bytes.copy(at: offset, into: UnsafeMutableRawBufferPointer(rebasing: room[..<wanted]))
        }
        return copied > 0 ? .copied(buffer) : nil
    }
}
