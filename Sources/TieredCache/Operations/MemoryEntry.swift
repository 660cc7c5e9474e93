import FoundationEssentials
import HTTPCaching
import HTTPTypes

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
    /// Whether the response came through for another client in a form that the application never
    /// sees; looked at by every hit.
    let isForClientsOnly: Bool

    init(head: StoredResponse, body: Data, generation: UInt64? = nil) {
        self.generation = generation
        self.head = head
        self.body = body
        varies = !head.selectingFields.isEmpty
        isForClientsOnly =
            head.flags.contains(.relayed)
            && ((300...399).contains(head.status) || ContentCoding(in: head.fields) != .identity)
    }

    /// What the entry counts against the limit: its bytes and an estimate of everything else.
    var cost: Int {
        var cost = body.count + 512
        for field in head.fields {
            cost += field.name.rawName.utf8.count + field.value.utf8.count + 64
        }
        return cost
    }
}
