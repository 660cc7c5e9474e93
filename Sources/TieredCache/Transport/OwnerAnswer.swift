package import HTTPCaching
import HTTPTypes

/// What the owner of a directory says of a response beside it.
package struct OwnerAnswer: Hashable, Sendable {
    /// The generation of the entry that the bytes are stored in; 0 where they are in memory, and nil
    /// where the owner does not store them.
    package let generation: UInt64?
    /// The URL that answered after redirects; nil if it is none.
    package let target: TargetURI?

    /// Takes the owner's fields from those of a response.
    init(taking fields: inout HTTPFields) {
        generation = fields[SharedRequest.stored].flatMap { UInt64($0) }
        target = fields[SharedRequest.location].flatMap { text in
            do throws(TargetURIError) {
                return try TargetURI(text)
            } catch {
                return nil
            }
        }
        (fields[SharedRequest.stored], fields[SharedRequest.location]) = (nil, nil)
    }

    /// What it means if the owner breaks off the body.
    var end: OwnerFailure {
        guard let generation, generation > 0 else { return .noAnswer }
        return .brokeOff(generation: generation)
    }
}

/// What became of an owner that was asked in the place of an origin.
package enum OwnerFailure: Hashable, Sendable {
    /// It was silent or busy, or had no response.
    case noAnswer
    /// It broke off a body that it stored in this generation of the entry.
    case brokeOff(generation: UInt64)
}
