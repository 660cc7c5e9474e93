/// Where the bytes of an answer came from.
public enum ResponseSource: String, Hashable, Sendable, CaseIterable {
    /// All of them from the memory tier; nothing was read from disk or asked of the origin.
    case memory
    /// All of them from the disk tier; nothing was asked of the origin.
    case disk
    /// At least one body byte from the origin.
    case origin
    /// Stored bytes that the origin has just confirmed (304, RFC 9111 §4.3.3).
    case revalidated
    /// Stored bytes that are no longer fresh, served because the origin could not be asked
    /// (RFC 9111 §4.2.4) or because it allows that (RFC 5861).
    case stale
}
