/// The source of bytes, for a progress line.
@nonexhaustive
public enum ByteSource: String, Hashable, Sendable, CaseIterable {
    /// The memory tier.
    case memory
    /// The disk tier.
    case disk
    /// The origin.
    case network
}
