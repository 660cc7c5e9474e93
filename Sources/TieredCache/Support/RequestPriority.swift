/// How urgent a request is; what several requests share is as urgent as the most urgent of them.
///
/// Urgency decides who gets the next free download slot. It takes a slot away from a download that
/// has started only where somebody plays and all are taken: then one that nobody waits for is
/// paused, once. One whose origin has not begun to answer gives its slot to what plays, until the
/// first byte comes.
public enum RequestPriority: Int, Hashable, Comparable, CaseIterable, Sendable {
    /// Nobody waits: maintenance, revalidation behind the user's back.
    case background
    /// Somebody will probably want it soon.
    case prefetch
    /// Somebody asked for it; the default.
    case normal
    /// Somebody looks at the place where it will appear.
    case high
    /// A player consumes it right now.
    case playing

    /// Orders priorities from ``background`` up to ``playing``.
    public static func < (left: RequestPriority, right: RequestPriority) -> Bool {
        left.rawValue < right.rawValue
    }
}
