package import HTTPCaching
import HTTPTypes

/// A request that a server expects to answer again, and the head that it was answered with last.
///
/// Keeps no body and no lease: what is stored is looked up each time.
package final class RepeatedRequest: Sendable {
    /// What tells whether a head is still that of the entry.
    enum Origin: Equatable, Sendable {
        case memory(UInt64)
        /// Comparing the same metadata again costs one comparison of addresses.
        case disk(generation: UInt64, metadata: [UInt8])
    }

    private struct Known: Sendable {
        var origin: Origin
        var head: HitHead
    }

    let request: CacheRequest
    /// What is asked for.
    package var target: TargetURI { request.target }
    private let known = Guarded<Known?>(nil)

    /// Keeps a request.
    ///
    /// - Parameter request: its range plays no role.
    package init(_ request: CacheRequest) {
        self.request = request
    }

    /// A request for a client of the cache as an intermediary, without a field that matters.
    package convenience init(relaying target: TargetURI) {
        var request = CacheRequest(target, key: nil, method: .get)
        request.relay = CacheRequest.Relay()
        self.init(request)
    }

    /// The head of a memory entry.
    func head(of entry: MemoryEntry) -> HitHead {
        known.withLock { known in
            if let known, known.origin == .memory(entry.number) { return known.head }
            let head = HitHead(entry.head, generation: entry.generation)
            known = Known(origin: .memory(entry.number), head: head)
            return head
        }
    }

    /// The head of a disk entry; nil if it cannot be read.
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

/// The head of something stored: the same object as long as the head is the same.
package final class HitHead: Sendable {
    let stored: StoredResponse
    /// The number of the body on disk; nil where it is not on disk.
    package let generation: UInt64?

    init(_ stored: StoredResponse, generation: UInt64?) {
        self.stored = stored
        self.generation = generation
    }
}
