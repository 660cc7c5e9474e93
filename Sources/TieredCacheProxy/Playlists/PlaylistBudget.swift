/// How much a playlist may cost, in proportion to its length and whatever it says.
///
/// | counted | at most |
/// | --- | --- |
/// | output: bytes that are put in | 1 MiB and 32 times the playlist, or 32 MiB |
/// | work: bytes that are read or made again for one address | 8 MiB and 32 times the playlist, or 64 MiB |
///
/// Real playlists become a few times as long, by the addresses that lead through the proxy. What
/// exceeds its budget is refused as a whole, so that no half of it leads past the proxy.
package struct PlaylistBudget: Hashable, Sendable {
    /// The bytes put in so far.
    package private(set) var output = 0
    /// The bytes read or made again so far.
    package private(set) var work = 0
    /// The most of each.
    package let outputLimit: Int
    package let workLimit: Int

    /// The budget of a playlist of so many bytes.
    package init(forLength count: Int) {
        let share = 32 * min(count, 1 << 32)
        outputLimit = min(32 << 20, 1 << 20 + share)
        workLimit = min(64 << 20, 8 << 20 + share)
    }

    /// Whether more was wanted than there is.
    package var isExceeded: Bool { output > outputLimit || work > workLimit }

    /// Counts bytes that are put in.
    mutating func spend(output count: Int) { output += count }

    /// Counts bytes that are read or made again.
    mutating func spend(work count: Int) { work += count }
}
