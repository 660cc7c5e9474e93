/// Why an entry left the memory tier.
@usableFromInline
package enum RemovalCause: String, CaseIterable, Hashable, Sendable {
    /// Its time had passed; noticed when it was looked up, evicted or swept.
    case expired
    /// The caller removed it.
    case explicit
    /// A newer value came under the same key, or one that was too large to be kept.
    case replaced
    /// The limit on cost or count asked for room.
    case size
    /// The machine is short of memory.
    case pressure
}
