/// Limits the cost of rewriting a playlist, in proportion to its length.
///
/// | counted | at most |
/// | --- | --- |
/// | output: bytes that are put in | 1 MiB and 32 times the playlist, or 32 MiB |
/// | work: bytes that are read or made again for one address | 8 MiB and 32 times the playlist, or 64 MiB |
///
/// Real playlists become a few times as long through proxied URLs. A playlist that exceeds its
/// budget is refused as a whole, so that no part of it bypasses the proxy.
package struct PlaylistBudget: Hashable, Sendable {
    /// The bytes inserted so far.
    package private(set) var output = 0
    /// The bytes read or copied for single addresses so far.
    package private(set) var work = 0
    /// The most bytes to insert; the most bytes to read or copy.
    package let outputLimit: Int
    package let workLimit: Int

    /// The budget of a playlist of `count` bytes.
    package init(forLength count: Int) {
        let share = 32 * min(count, 1 << 32)
        outputLimit = min(32 << 20, 1 << 20 + share)
        workLimit = min(64 << 20, 8 << 20 + share)
    }

    /// Whether more was spent than allowed.
    package var isExceeded: Bool { output > outputLimit || work > workLimit }

    /// Counts inserted bytes.
    mutating func spend(output count: Int) { output += count }

    /// Counts bytes that are read or copied for one address.
    mutating func spend(work count: Int) { work += count }
}
