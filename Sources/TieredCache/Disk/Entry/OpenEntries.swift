/// The entries that are in memory: those that have a name, and those that wait for one.
struct OpenEntries {
    var residents = ResidentTable()
    var successors = SuccessorTable()
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
}
