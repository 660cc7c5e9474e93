package import FoundationEssentials
package import HTTPCaching
package import HTTPTypes

/// What a request is answered with by what is stored, on the thread that asks.
package struct ImmediateHit: Sendable {
    /// The head; see ``fields``.
    package let head: HitHead
    /// The bytes wanted, all of which are stored.
    package let range: Range<Int64>
    /// The length of the whole representation.
    package let completeLength: Int64
    /// What the cache did.
    package let cacheStatus: CacheStatus
    /// Which tier answered.
    package let tier: MediaCache.Event.Tier
    /// Where the bytes are.
    package let bytes: StoredBytes

    /// The status of the representation.
    package var status: Int { head.stored.status }

    /// The URL that answered, where redirects led to another than was asked for.
    package var finalURL: String? { head.stored.origin.finalURL }

    /// The fields of the representation at `now`.
    package func fields(now: WallTime) -> HTTPFields { head.stored.fieldsForReuse(now: now) }
}

/// Bytes that are stored, to be read without waiting.
package enum StoredBytes: Sendable {
    case memory(Data)
    case disk(DiskEntry)

    /// Copies bytes as far as that needs no disk.
    ///
    /// - Parameters:
    ///   - offset: where in the body.
    ///   - buffer: where they go; its size is the most that is copied.
    /// - Returns: how many; 0 where the disk would be needed, or a byte is not stored any more.
    package func copy(at offset: Int64, into buffer: UnsafeMutableRawBufferPointer) -> Int {
        switch self {
        case .memory(let data):
            guard offset >= 0, offset < data.count else { return 0 }
            return data.withUnsafeBytes { bytes in
                let part = bytes[Int(offset)...].prefix(buffer.count)
                buffer.copyMemory(from: UnsafeRawBufferPointer(rebasing: part))
                return part.count
            }
        case .disk(let entry):
            guard case .ready(let count) = entry.readWithoutBlocking(at: offset, into: buffer)
            else { return 0 }
            return count
        }
    }

    /// Lends bytes to be sent from a file; nil where they are to be copied.
    package func lease(_ range: Range<Int64>) -> LeasedBytes? {
        guard case .disk(let entry) = self else { return nil }
        return entry.lease(range)
    }
}
