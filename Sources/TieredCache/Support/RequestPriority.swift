/// The priority of a request; a transfer that several requests share has the highest of theirs.
///
/// The priority decides which request gets the next free download slot. A download that has started
/// loses its slot only if a player waits and all slots are taken: then one without a waiting reader
/// is paused, once. A download whose origin has not begun to answer gives its slot to one for a
/// player, until its first byte comes.
public enum RequestPriority: Int, Hashable, Comparable, CaseIterable, Sendable {
    /// No reader waits: maintenance, revalidation in the background.
    case background
    /// It will probably be needed soon, as in a prefetch.
    case prefetch
    /// The default: a reader waits for it.
    case normal
    /// The user sees the place where it will appear.
    case high
    /// A player consumes it right now.
    case playing

    /// Orders priorities from ``background`` up to ``playing``.
    public static func < (left: RequestPriority, right: RequestPriority) -> Bool {
        left.rawValue < right.rawValue
    }
}
