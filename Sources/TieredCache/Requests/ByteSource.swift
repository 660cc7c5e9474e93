/// Where bytes came from, as a progress line names it.
@nonexhaustive
public enum ByteSource: String, Hashable, Sendable, CaseIterable {
    /// They were in the memory tier.
    case memory
    /// They were stored on disk.
    case disk
    /// They had to be fetched.
    case network
}
