import FoundationEssentials
import HTTPCaching
import HTTPTypes
import Synchronization

/// A whole response in the memory tier.
///
/// A class, so that a hit retains one object however many parts it has.
final class MemoryEntry: Sendable {
    let head: StoredResponse
    let body: Data
    /// Whether hits have to compare request fields; most responses have no `Vary`.
    let varies: Bool
    /// The number of the body on disk that this is a copy of; nil where there is none.
    let generation: UInt64?
    /// ``StoredResponse/isForClientsOnly``, looked at by every hit.
    let isForClientsOnly: Bool

    /// Tells entries apart, also those that are no more.
    let number: UInt64

    private static let numbers = Atomic<UInt64>(0)

    /// Between these instants, in nanoseconds, a plain request may use the entry; see
    /// ``isFresh(at:)``.
    private let freshFrom = Atomic<Int64>(.max)
    private let freshUntil = Atomic<Int64>(.min)

    init(head: StoredResponse, body: Data, generation: UInt64? = nil) {
        self.generation = generation
        number = Self.numbers.wrappingAdd(1, ordering: .relaxed).newValue
        self.head = head
        self.body = body
        varies = !head.selectingFields.isEmpty
        isForClientsOnly = head.isForClientsOnly
    }

    /// Whether a request without cache directives may use the entry without a further check.
    ///
    /// The rules were evaluated once, see ``noteFresh(at:for:)``, and their result stays the same
    /// until the lifetime ends. An entry never changes; what is freshened or invalidated is a new
    /// one.
    @inline(__always)
    func isFresh(at now: WallTime) -> Bool {
        now.nanoseconds >= freshFrom.load(ordering: .relaxed)
            && now.nanoseconds < freshUntil.load(ordering: .relaxed)
    }

    /// Whether the body has all digests that a request expects.
    ///
    /// - Complexity: one pass over the body for each of them; most requests expect none.
    @inline(__always)
    func isExpected(by request: CacheRequest) -> Bool {
        request.expectedDigests.isEmpty || hasDigests(request.expectedDigests)
    }

    /// Whether the body has these digests, as far as this system can tell.
    func hasDigests(_ digests: [ContentDigest]) -> Bool {
        digests.allSatisfy { digest in
            // Without a result this system lacks the algorithm.
            guard let context = DigestContext(digest.algorithm),
                body.withUnsafeBytes({ context.update($0) }), let found = context.finish()
            else { return true }
            return found == digest
        }
    }

    /// Notes the result of the rules for a plain request.
    ///
    /// Two threads may note at once, and a third may see one word of each: every beginning noted is
    /// an instant of the same lifetime, and every end is its end.
    func noteFresh(at now: WallTime, for timeToLive: Duration) {
        freshUntil.store(now.advanced(by: timeToLive).nanoseconds, ordering: .relaxed)
        freshFrom.store(now.nanoseconds, ordering: .relaxed)
    }

    /// The cost of the entry against the limit: its bytes and an estimate of everything else.
    var cost: Int {
        var cost = body.count + 512
        for field in head.fields {
            cost += field.name.rawName.utf8.count + field.value.utf8.count + 64
        }
        return cost
    }
}

extension StoredResponse {
    /// Whether the response came through for another client in a form that the application never
    /// sees: a redirect, or a coded body.
    var isForClientsOnly: Bool {
        flags.contains(.relayed)
            && ((300...399).contains(status) || ContentCoding(in: fields) != .identity)
    }
}
