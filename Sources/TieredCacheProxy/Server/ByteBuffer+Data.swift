import FoundationEssentials
import NIOCore

extension ByteBuffer {
    /// A buffer with the same bytes; NIO writes from no storage but its own.
    init(copying data: Data) {
        self.init()
        data.withUnsafeBytes { bytes in
            reserveCapacity(bytes.count)
            writeBytes(bytes)
        }
    }
}
