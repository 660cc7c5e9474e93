import SystemPackage
import TieredCacheTesting

/// Decoded pictures, each by its digest, so that a difference is told in a few lines.
///
/// A digest is good for one process.
struct Pictures: Equatable, Sendable {
    /// The bytes of a picture of the films: 320 by 180, brightness and two colours at a quarter.
    private static let size = 320 * 180 * 3 / 2

    let digests: [Int]

    /// Takes a file of pictures one behind the other, without anything between them.
    init(_ raw: [UInt8]) {
        digests = stride(from: 0, to: raw.count, by: Self.size).map { start in
            digest(raw[start..<min(raw.count, start + Self.size)])
        }
    }

    /// Takes such a file of a directory.
    init(_ name: String, in directory: TemporaryDirectory) throws {
        self.init(try directory.bytes(name))
    }

    var count: Int { digests.count }

    /// The last pictures.
    func last(_ count: Int) -> [Int] { digests.suffix(count) }

    /// The first pictures.
    func first(_ count: Int) -> [Int] { Array(digests.prefix(count)) }
}

/// What stands for some bytes in this process.
func digest(_ bytes: some Sequence<UInt8>) -> Int {
    var hasher = Hasher()
    let isDone: Void? = bytes.withContiguousStorageIfAvailable { storage in
        hasher.combine(bytes: UnsafeRawBufferPointer(storage))
    }
    if isDone == nil { for byte in bytes { hasher.combine(byte) } }
    return hasher.finalize()
}
