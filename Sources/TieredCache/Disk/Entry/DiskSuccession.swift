/// How a new entry follows the one that has its name.
struct DiskSuccession: Sendable {
    /// The removal cause reported for the replaced entry.
    var cause = DiskRemoval.Cause.replaced
    /// Whether the new entry, such as an error response, must not replace a pinned one.
    var sparesPinned = false
    /// Whether a successor waits for ``DiskEntry/takeName()`` once it is complete.
    var awaitsDecision = false
    /// Whether the new entry is still wanted.
    ///
    /// Called with the lock of the name, so that an entry that is no longer wanted cannot follow a
    /// removal. Must not block on the disk.
    var isWanted: @Sendable () -> Bool = { true }

    /// - Throws: `.cancelled` if the new entry is no longer wanted.
    func requireWanted() throws(CacheError) {
        guard isWanted() else { throw .leftTransfer }
    }
}

/// The state of an entry that was made while a complete pinned one had its name.
enum SuccessionState: Equatable, Sendable {
    /// No successor: the entry had its name from the start.
    case none
    /// It has no name yet. Once complete it takes the name, at once or after a decision.
    case waiting(forDecision: Bool)
    /// It has taken the name.
    case done
}

/// The successors: entries without a name, each of which takes that of a complete pinned one as
/// soon as it is complete itself.
///
/// Holds no lease: a successor without a transfer or a reader is released.
struct SuccessorTable {
    private struct Place {
        weak var entry: DiskEntry?
        var generation: UInt64
    }

    private var places: [EntryName: Place] = [:]

    var isEmpty: Bool { places.isEmpty }

    var names: [EntryName] { Array(places.keys) }

    /// The successor of a name, leased; ``ResidentTable/remove(_:)`` says how to release it.
    subscript(name: EntryName) -> DiskEntry? { places[name]?.entry }

    mutating func insert(_ entry: DiskEntry) {
        places[entry.name] = Place(entry: entry, generation: entry.generation)
    }

    /// Whether a body without a record belongs to a successor.
    func isWaiting(_ name: EntryName, generation: UInt64) -> Bool {
        places[name]?.generation == generation
    }

    /// Removes the successor of a name.
    mutating func remove(_ name: EntryName) -> DiskEntry? {
        places.removeValue(forKey: name)?.entry
    }

    /// Forgets a successor that is gone.
    mutating func sweep(_ name: EntryName, generation: UInt64) {
        if isWaiting(name, generation: generation) { places[name] = nil }
    }
}
