package import HTTPCaching
import HTTPTypes

/// A request that a server expects to answer again, with the head of the last response.
///
/// Holds no body and no lease: each use looks the entry up again.
package final class RepeatedRequest: Sendable {
    /// Identifies the entry of the head, to tell whether the head is still current.
    enum Origin: Equatable, Sendable {
        case memory(UInt64)
        /// Comparing identical metadata again costs one comparison of addresses.
        case disk(generation: UInt64, metadata: [UInt8])
    }

    private struct Known: Sendable {
        var origin: Origin
        var head: HitHead
    }

    let request: CacheRequest
    /// The target of the request.
    package var target: TargetURI { request.target }
    private let known = Guarded<Known?>(nil)

    /// Creates a repeated request without a known head.
    ///
    /// - Parameter request: the request; its range is ignored.
    package init(_ request: CacheRequest) {
        self.request = request
    }

    /// A request for a client of a relay, without fields.
    package convenience init(relaying target: TargetURI) {
        var request = CacheRequest(target, key: nil, method: .get)
        request.relay = CacheRequest.Relay()
        self.init(request)
    }

    /// The head of a memory entry, decoded at most once as long as the entry stays the same.
    func head(of entry: MemoryEntry) -> HitHead {
        known.withLock { known in
            // By number and not by key: a freshened entry has the same key and another head.
            if let known, known.origin == .memory(entry.number) { return known.head }
            let head = HitHead(entry.head, generation: entry.generation)
            known = Known(origin: .memory(entry.number), head: head)
            return head
        }
    }

    /// The head of a disk entry; nil if it cannot be decoded.
    func head(of entry: DiskEntry) -> HitHead? {
        let origin = Origin.disk(generation: entry.generation, metadata: entry.metadata)
        return known.withLock { known in
            if let known, known.origin == origin { return known.head }
            guard let stored = StoredResponse(encoded: entry.metadata) else { return nil }
            let head = HitHead(stored, generation: entry.generation)
            known = Known(origin: origin, head: head)
            return head
        }
    }
}

/// The head of a stored response: the same object as long as the head is the same.
package final class HitHead: Sendable {
    let stored: StoredResponse
    /// The generation of the body on disk; nil if it is only in memory.
    package let generation: UInt64?

    init(_ stored: StoredResponse, generation: UInt64?) {
        self.stored = stored
        self.generation = generation
    }
}
