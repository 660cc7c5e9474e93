import Synchronization
import SystemPackage

/// One entry, as a list shows it.
package struct DiskEntrySummary: Sendable {
    /// The whole key.
    package var key: CacheKey
    /// The metadata as they were stored.
    package var metadata: [UInt8]
    /// The length of the whole body; `nil` while unknown.
    package var completeLength: Int64?
    /// How many bytes of the body are stored.
    package var storedBytes: Int64
    /// The ranges stored, in ascending order.
    package var storedRanges: [Range<Int64>]
    /// Whether all of them are.
    package var isComplete: Bool
    /// Whether it is protected from eviction.
    package var isPinned: Bool
    /// Whether it was prefetched and not used yet.
    package var isPrefetched: Bool
    /// The bytes allocated for its files.
    package var allocatedBytes: Int64
    /// When it was last used, in seconds since 1970; when it was made if it never was.
    package var lastUse: Int64
}

extension DiskStore {
    /// Every entry that is on disk, in no order.
    ///
    /// - Parameter report: gets the error of each entry that is left out because its record cannot
    ///   be read.
    /// - Returns: the entries that can be read.
    /// - Throws: ``CacheError/Code/localStorage`` if the directory cannot be read.
    package func list(
        report: (CacheError) -> Void = { _ in }
    ) throws(CacheError) -> [DiskEntrySummary] {
        var result: [DiskEntrySummary] = []
        for slot in try slotsToList() {
            do throws(CacheError) {
                if let summary = try summary(slot) { result.append(summary) }
            } catch {
                report(error)
            }
        }
        return result
    }

    private func slotsToList() throws(CacheError) -> [DiskIndex.Slot] {
        // A guest's index is as old as its first call: look again.
        guard access.canWrite else {
            let scan = try scan()
            return scan.slots + scan.withheld
        }
        try loadIndex()
        foldUses()
        return state.withLock { $0.entries.index.all }
    }

    /// - Returns: nil for an entry that was removed meanwhile.
    private func summary(_ slot: DiskIndex.Slot) throws(CacheError) -> DiskEntrySummary? {
        guard let found = try readRecord(of: slot.name) else { return nil }
        let open = state.withLock { $0.open.residents[slot.name] }
        let table = open?.state.withLock { $0.table } ?? found.table
        return DiskEntrySummary(
            key: found.record.key,
            metadata: found.record.metadata,
            completeLength: table.completeLength,
            storedBytes: table.storedBytes,
            storedRanges: table.storedRanges.ranges,
            isComplete: table.isComplete,
            isPinned: found.record.flags.contains(.pinned),
            isPrefetched: slot.queue == .prefetched,
            allocatedBytes: slot.bytes,
            lastUse: Int64(clamping: slot.lastUse / 1_000_000_000)
        )
    }
}
