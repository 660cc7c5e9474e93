import FoundationEssentials
import NIOCore

extension ByteBuffer {
    /// Copies the bytes into a buffer, because NIO writes only from its own storage.
    init(copying data: Data) {
        self.init()
        data.withUnsafeBytes { bytes in
            reserveCapacity(bytes.count)
            writeBytes(bytes)
        }
    }
}
