/// How a new entry follows the one that has its name.
struct DiskSuccession: Sendable {
    /// What is to be said about the one that goes.
    var cause = DiskRemoval.Cause.replaced
    /// Whether what comes is no generation of what is pinned, such as an error, and must not
    /// replace it.
    var sparesPinned = false
    /// Whether a successor waits for ``DiskEntry/takeName()`` once it is complete.
    var awaitsDecision = false
}

/// Where an entry stands that was made while a complete pinned one had its name.
enum SuccessionState: Equatable, Sendable {
    /// It was not: it had its name from the start.
    case none
    /// It has no name yet; once complete it takes it, at a word or at once.
    case waiting(forDecision: Bool)
    /// It has taken the name.
    case done
}

/// The successors: entries without a name, each of which takes that of a complete pinned one as
/// soon as it is complete itself.
///
/// Holds no lease: a successor that nobody brings or reads any more is gone.
struct SuccessorTable {
    private struct Place {
        weak var entry: DiskEntry?
        var generation: UInt64
    }

    private var places: [EntryName: Place] = [:]

    var isEmpty: Bool { places.isEmpty }

    var names: [EntryName] { Array(places.keys) }

    /// The successor of a name, leased: see ``ResidentTable/remove(_:)`` for what letting go of it
    /// takes.
    subscript(name: EntryName) -> DiskEntry? { places[name]?.entry }

    mutating func insert(_ entry: DiskEntry) {
        places[entry.name] = Place(entry: entry, generation: entry.generation)
    }

    /// Whether a body is a successor's, which no record speaks of.
    func isWaiting(_ name: EntryName, _ generation: UInt64) -> Bool {
        places[name]?.generation == generation
    }

    /// Removes the successor of a name.
    mutating func remove(_ name: EntryName) -> DiskEntry? {
        places.removeValue(forKey: name)?.entry
    }

    /// Forgets a successor that is gone.
    mutating func sweep(_ name: EntryName, _ generation: UInt64) {
        if isWaiting(name, generation) { places[name] = nil }
    }
}
