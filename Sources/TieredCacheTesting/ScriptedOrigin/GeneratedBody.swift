#if canImport(Glibc)
import Glibc
#elseif canImport(Darwin)
import Darwin
#endif

/// Bytes that are computed from their offset, so that a body of many GiB needs no memory.
///
/// Every page of 4 KiB starts with a unique stamp and continues with noise from a position that
/// depends on its number, so that bytes at a wrong offset or from another seed differ.
public struct GeneratedBody: Hashable, Sendable {
    /// The seed of the bytes.
    public let seed: UInt64
    /// The number of bytes.
    public let length: Int64

    private static let pageSize = 4096
    private static let noiseSize = 64 * 1024
    private static let stampSize = 8

    /// One page longer than the number of positions at which a page may start.
    private let noise: [UInt8]

    /// Creates a body.
    ///
    /// - Parameters:
    ///   - seed: the seed of the bytes.
    ///   - length: the number of bytes; not negative.
    public init(seed: UInt64, length: Int64) {
        precondition(length >= 0)
        self.seed = seed
        self.length = length
        noise = Self.makeNoise(seed: seed)
    }

    /// Fills `buffer` with the bytes from `offset` on.
    ///
    /// - Parameters:
    ///   - buffer: where the bytes go; it must not reach beyond the end of the body.
    ///   - offset: the offset of the first byte.
    public func fill(_ buffer: UnsafeMutableRawBufferPointer, from offset: Int64) {
        precondition(offset >= 0 && offset + Int64(buffer.count) <= length)
        var done = 0
        while done < buffer.count {
            let position = offset + Int64(done)
            let inPage = Int(position % Int64(Self.pageSize))
            let count = min(Self.pageSize - inPage, buffer.count - done)
            let part = UnsafeMutableRawBufferPointer(rebasing: buffer[done..<done + count])
            fillPage(UInt64(position / Int64(Self.pageSize)), from: inPage, into: part)
            done += count
        }
    }

    /// The bytes of `range`, which must lie within the body.
    public func bytes(in range: Range<Int64>) -> [UInt8] {
        [UInt8](unsafeUninitializedCapacity: range.count) { buffer, count in
            let target = UnsafeMutableRawBufferPointer(
                rebasing: UnsafeMutableRawBufferPointer(buffer)[..<range.count]
            )
            fill(target, from: range.lowerBound)
            count = range.count
        }
    }

    /// The whole body; for small ones.
    public func bytes() -> [UInt8] { bytes(in: 0..<length) }

    /// Whether `bytes` are those that start at `offset`.
    public func matches(_ bytes: UnsafeRawBufferPointer, at offset: Int64) -> Bool {
        guard offset >= 0, offset <= length, Int64(bytes.count) <= length - offset else {
            return false
        }
        var done = 0
        while done < bytes.count {
            let count = min(bytes.count - done, 1 << 16)
            let start = offset + Int64(done)
            let expected = self.bytes(in: start..<start + Int64(count))
            guard bytes[done..<done + count].elementsEqualMemory(expected) else { return false }
            done += count
        }
        return true
    }

    /// Whether `bytes` are those that start at `offset`.
    public func matches(_ bytes: [UInt8], at offset: Int64 = 0) -> Bool {
        bytes.withUnsafeBytes { matches($0, at: offset) }
    }

    /// Compares seed and length, which determine the bytes.
    public static func == (left: GeneratedBody, right: GeneratedBody) -> Bool {
        left.seed == right.seed && left.length == right.length
    }

    /// Hashes seed and length.
    public func hash(into hasher: inout Hasher) {
        hasher.combine(seed)
        hasher.combine(length)
    }

    private func fillPage(
        _ page: UInt64,
        from inPage: Int,
        into target: UnsafeMutableRawBufferPointer
    ) {
        let stamp = Self.mix(seed ^ Self.mix(page))
        let start = Int(stamp % UInt64(Self.noiseSize)) + inPage
        target.copyBytes(from: noise[start..<start + target.count])
        for index in inPage..<max(inPage, min(Self.stampSize, inPage + target.count)) {
            target[index - inPage] = UInt8(truncatingIfNeeded: stamp >> (8 * UInt64(index)))
        }
    }

    private static func makeNoise(seed: UInt64) -> [UInt8] {
        var noise: [UInt8] = []
        noise.reserveCapacity(noiseSize + pageSize)
        var counter = seed
        while noise.count < noiseSize + pageSize {
            counter &+= 0x9E37_79B9_7F4A_7C15
            withUnsafeBytes(of: mix(counter).littleEndian) { noise.append(contentsOf: $0) }
        }
        return noise
    }

    /// The finalizer of SplitMix64.
    private static func mix(_ value: UInt64) -> UInt64 {
        var value = value &+ 0x9E37_79B9_7F4A_7C15
        value = (value ^ (value >> 30)) &* 0xBF58_476D_1CE4_E5B9
        value = (value ^ (value >> 27)) &* 0x94D0_49BB_1331_11EB
        return value ^ (value >> 31)
    }
}

extension Slice<UnsafeRawBufferPointer> {
    fileprivate func elementsEqualMemory(_ other: [UInt8]) -> Bool {
        guard count == other.count else { return false }
        guard let address = UnsafeRawBufferPointer(rebasing: self).baseAddress else { return true }
        return other.withUnsafeBytes { bytes in
            bytes.baseAddress.map { memcmp(address, $0, count) == 0 } ?? true
        }
    }
}
