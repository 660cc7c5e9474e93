/// The entries that are in memory: those that have a name, those that wait for one, and those that
/// wait for their last use to be written.
struct OpenEntries {
    var residents = ResidentTable()
    var successors = SuccessorTable()
    /// What has left memory; bounded, since the disk may hang.
    private var retired: [RetiredEntry] = []
    private static let maximumRetired = 1024
    /// Whether ``takeRetired()`` is going to be called until it returns nil.
    private var isWritingRetired = false
    /// Whether the store was closed, so that no entry is kept any more.
    private(set) var isClosed = false

    /// Keeps no entry any more.
    ///
    /// - Returns: what was kept, see ``ResidentTable/remove(_:)``.
    mutating func close() -> ResidentTable {
        isClosed = true
        defer { residents = ResidentTable() }
        return residents
    }

    /// Keeps entries until they are written; the last of too many are not.
    ///
    /// - Returns: whether the caller has to see to it that ``takeRetired()`` is called.
    mutating func keep(_ entries: [RetiredEntry]) -> Bool {
        retired += entries.prefix(Self.maximumRetired - retired.count)
        guard !retired.isEmpty, !isWritingRetired else { return false }
        isWritingRetired = true
        return true
    }

    /// An entry that is to be written.
    mutating func takeRetired() -> RetiredEntry? {
        let next = retired.popLast()
        isWritingRetired = next != nil
        return next
    }
}

/// An entry that has left memory.
struct RetiredEntry {
    let entry: DiskEntry
    /// When it was used; nil if that is written.
    let use: UInt64?
}
