import CXXHash
import HTTPCaching

/// The head of a record file: everything but the block checksums and the body.
///
/// The layout is in docs/disk-format.md.
struct Record: Sendable {
    struct Flags: OptionSet, Sendable {
        let rawValue: UInt32
        static let inline = Flags(rawValue: 1)
        static let pinned = Flags(rawValue: 2)
        static let prefetched = Flags(rawValue: 4)
        /// The body's path was given away: no block of it is given up while the file is there.
        static let handedOut = Flags(rawValue: 8)
    }

    /// A length that a hostile head cannot exceed.
    static let maximumFieldLength = 16 << 20
    static let fixedLength = 64
    static let lastUseOffset: Int64 = 16
    /// `.TCrec`, format version 2, newline, as a little-endian number.
    static let magic: UInt64 = 0x0A02_6365_7243_5489
    /// The same of version 1, whose last use is in seconds; all else is as now.
    static let magicOfVersion1: UInt64 = 0x0A01_6365_7243_5489

    var key: CacheKey
    var metadata: [UInt8]
    var generation: UInt64
    var completeLength: Int64?
    var created: WallTime
    var flags: Flags
    /// Nanoseconds since 1970; 0 = never used.
    var lastUse: UInt64 = 0
    /// The version that the file has; it is written as the current one.
    var version = DiskDirectory.formatVersion

    /// Where the block checksums start.
    var tableOffset: Int64 {
        Self.tableOffset(keyLength: key.string.utf8.count, metadataLength: metadata.count)
    }

    static func tableOffset(keyLength: Int, metadataLength: Int) -> Int64 {
        Int64((fixedLength + keyLength + metadataLength + 7) & ~7)
    }

    /// The head and the table as they stand in the file.
    ///
    /// - Parameters:
    ///   - table: the block checksums.
    ///   - comparison: the word that says that the body was compared; only with the checksums of a
    ///     complete body in a file of its own.
    /// - Returns: the bytes.
    func encode(table: [UInt64], comparison: UInt64? = nil) -> [UInt8] {
        let keyLength = key.string.utf8.count
        let headEnd = Self.fixedLength + keyLength + metadata.count
        let words = table + (comparison.map { [$0] } ?? [])
        let total = Int(tableOffset) + 8 * words.count
        return [UInt8](unsafeUninitializedCapacity: total) { buffer, count in
            count = total
            let bytes = UnsafeMutableRawBufferPointer(buffer)
            encodeFixed(into: bytes, keyLength: keyLength)
            var key = key.string
            key.withUTF8 { key in
                bytes[Self.fixedLength..<(Self.fixedLength + keyLength)].copyAll(key)
            }
            metadata.withUnsafeBufferPointer { metadata in
                bytes[(Self.fixedLength + keyLength)..<headEnd].copyAll(metadata)
            }
            for index in headEnd..<Int(tableOffset) {
                bytes[index] = 0
            }
            for (index, word) in words.enumerated() {
                bytes.put(word, at: Int(tableOffset) + 8 * index)
            }
            // Not of the last use at 16, which is written alone, in place.
            bytes.put(checksumOf(UnsafeRawBufferPointer(bytes)[24..<headEnd]), at: 8)
        }
    }

    private func encodeFixed(into bytes: UnsafeMutableRawBufferPointer, keyLength: Int) {
        bytes.put(Self.magic, at: 0)
        bytes.put(lastUse, at: Int(Self.lastUseOffset))
        bytes.put(flags.rawValue, at: 24)
        bytes.put(UInt32(BlockTable.blockSize), at: 28)
        bytes.put(generation, at: 32)
        bytes.put(completeLength ?? -1, at: 40)
        bytes.put(created.nanoseconds, at: 48)
        bytes.put(UInt32(keyLength), at: 56)
        bytes.put(UInt32(metadata.count), at: 60)
    }
}

/// XXH3-64, the checksum of blocks and heads.
@inline(__always)
func checksumOf(_ bytes: Slice<UnsafeRawBufferPointer>) -> UInt64 {
    checksumOf(UnsafeRawBufferPointer(rebasing: bytes))
}

/// XXH3-64, the checksum of blocks and heads.
@inline(__always)
func checksumOf(_ bytes: UnsafeRawBufferPointer) -> UInt64 {
    XXH3_64bits(bytes.baseAddress, bytes.count)
}

/// A block's checksum as the table holds it: never 0, which means not stored.
@inline(__always)
func blockChecksum(_ bytes: UnsafeRawBufferPointer) -> UInt64 {
    max(checksumOf(bytes), 1)
}

extension UnsafeMutableRawBufferPointer {
    @inline(__always)
    func put(_ value: some FixedWidthInteger, at offset: Int) {
        storeBytes(of: value.littleEndian, toByteOffset: offset, as: type(of: value))
    }
}

extension Slice<UnsafeMutableRawBufferPointer> {
    fileprivate func copyAll(_ bytes: UnsafeBufferPointer<UInt8>) {
        UnsafeMutableRawBufferPointer(rebasing: self).copyMemory(
            from: UnsafeRawBufferPointer(bytes)
        )
    }
}
