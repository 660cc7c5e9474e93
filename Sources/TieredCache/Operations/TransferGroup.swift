/// Identifies requests that may share a transfer (invariant 8).
package struct TransferGroup: Hashable, Sendable {
    /// The key of the entry that the transfer writes.
    package let key: CacheKey
    /// A text that is equal exactly for requests with equal selecting fields.
    ///
    /// It covers authorization, the fields that `Vary` names, and the generation if a reader is
    /// bound to one. The text may contain secrets: it is compared, never logged.
    package let selector: String

    package init(key: CacheKey, selector: String = "") {
        self.key = key
        self.selector = selector
    }
}

/// Identifies one transfer, a download that several subscribers share; never reused in a process.
package struct TransferID: Hashable, Comparable, Sendable, CustomStringConvertible {
    package let number: UInt64

    package var description: String { "transfer \(number)" }

    package static func < (left: TransferID, right: TransferID) -> Bool {
        left.number < right.number
    }
}

/// Identifies one reader of a resource, which may have several subscriptions.
package struct ReaderID: Hashable, Sendable {
    let number: UInt64
}

/// Identifies one subscriber of a transfer; never reused in a process.
package struct SubscriberID: Hashable, Comparable, Sendable, CustomStringConvertible {
    package let number: UInt64

    package var description: String { "subscriber \(number)" }

    package static func < (left: SubscriberID, right: SubscriberID) -> Bool {
        left.number < right.number
    }
}
