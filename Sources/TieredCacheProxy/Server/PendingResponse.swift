import NIOCore
import TieredCache

/// An answer whose bytes are stored: it is sent from the event loop, piece by piece, as the client
/// takes them.
///
/// Nothing of it is in memory but the piece that is being written.
struct PendingResponse: Sendable {
    var head: ResponseHead
    let bytes: StoredBytes
    /// Which of the bytes.
    let range: Range<Int64>
    /// Goes on from an offset where the loop would have to wait for the disk; ends the answer.
    let goOn: @Sendable (_ offset: Int64, ResponseWriter) async -> Void

    /// Bytes to be written next.
    enum Piece {
        case copied(ByteBuffer)
        case leased(LeasedBytes)
    }

    /// Shorter pieces are copied: two system calls would cost more than that.
    static let minimumLeased: Int64 = 32 << 10
    /// The most that is copied at once; a client that does not read keeps so much in memory.
    static let maximumCopied: Int64 = 64 << 10
    /// The most that is given to the kernel at once.
    static let maximumLeased: Int64 = 1 << 20

    /// The piece at an offset; nil where the disk would have to be waited for.
    func piece(at offset: Int64, _ allocator: ByteBufferAllocator) -> Piece? {
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
