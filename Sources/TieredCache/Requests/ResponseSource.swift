/// The source of a response's bytes.
public enum ResponseSource: String, Hashable, Sendable, CaseIterable {
    /// All from the memory tier; without a read from disk or a request to the origin.
    case memory
    /// All from the disk tier; without a request to the origin.
    case disk
    /// At least one body byte from the origin.
    case origin
    /// Stored bytes that the origin has just confirmed (304, RFC 9111 §4.3.3).
    case revalidated
    /// Stored bytes that are no longer fresh, served because the origin could not be reached
    /// (RFC 9111 §4.2.4) or because it allows that (RFC 5861).
    case stale
}
