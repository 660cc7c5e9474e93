package import FoundationEssentials
package import HTTPCaching
package import HTTPTypes

/// A response made of stored bytes, without a wait, on the calling thread.
package struct ImmediateHit: Sendable {
    /// The head; see ``fields``.
    package let head: HitHead
    /// The wanted bytes, all of which are stored.
    package let range: Range<Int64>
    /// The length of the whole representation.
    package let completeLength: Int64
    /// How the cache handled the request.
    package let cacheStatus: CacheStatus
    /// The tier that holds the bytes.
    package let tier: MediaCache.Event.Tier
    /// The stored bytes.
    package let bytes: StoredBytes

    /// The status of the representation.
    package var status: Int { head.stored.status }

    /// The URL of the response, if redirects led to another URL than the requested one.
    package var finalURL: String? { head.stored.origin.finalURL }

    /// The names of the request fields that select it, in lower case.
    package var selectingNames: [String] { head.stored.selectingFields.map(\.name) }

    /// The fields of the representation at `now`.
    package func fields(now: WallTime) -> HTTPFields { head.stored.fieldsForReuse(now: now) }
}

/// Stored bytes that can be read without a wait.
package enum StoredBytes: Sendable {
    case memory(Data)
    case disk(DiskEntry)

    /// Copies as many bytes as are available without a disk read.
    ///
    /// - Parameters:
    ///   - offset: the position in the body.
    ///   - buffer: the destination; its size limits the count.
    /// - Returns: the number of bytes copied; 0 if a disk read is needed or the byte at `offset` is
    ///   no longer stored.
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

    /// Leases bytes of a file for sending them now; nil if they must be copied instead.
    package func lease<Result>(
        _ range: Range<Int64>,
        send: (LeasedBytes) -> Result
    ) -> Result? {
        guard case .disk(let entry) = self else { return nil }
        return entry.lease(range, send: send)
    }
}
