/// What two requests must have in common to share a transfer (invariant 8).
package struct TransferGroup: Hashable, Sendable {
    /// The entry that the transfer fills.
    package let key: CacheKey
    /// A text that is equal exactly for requests whose selecting fields are equal.
    ///
    /// Those are authorization, Vary'd fields, and the generation where a reader is bound to one.
    /// The text may hold secrets: it is compared, never logged.
    package let selector: String

    package init(key: CacheKey, selector: String = "") {
        self.key = key
        self.selector = selector
    }
}

/// Names one transfer, a download that several subscribers share; never reused in a process.
package struct TransferID: Hashable, Comparable, Sendable, CustomStringConvertible {
    package let number: UInt64

    package var description: String { "transfer \(number)" }

    package static func < (left: TransferID, right: TransferID) -> Bool {
        left.number < right.number
    }
}

/// Names one subscriber of a transfer; never reused in a process.
package struct SubscriberID: Hashable, Comparable, Sendable, CustomStringConvertible {
    package let number: UInt64

    package var description: String { "subscriber \(number)" }

    package static func < (left: SubscriberID, right: SubscriberID) -> Bool {
        left.number < right.number
    }
}
