import TieredCache

/// The possible states of a disk after a power cut.
///
/// Each page of 4096 bytes, each file's length and each name may independently be in any state that
/// it had since it was synced. No real disk is worse, and few are as bad.
package enum CrashOutcome: Hashable, Sendable {
    /// Everything is kept: only the process died.
    case everythingKept
    /// Everything that was not synced is lost.
    case unsyncedLost
    /// Each page, length and name is in a random one of its states, decided by the seed.
    case mixed(seed: UInt64)
}

extension InMemoryFileSystem {
    /// A disk as a power cut at this moment may leave it, with nothing open and nothing locked.
    ///
    /// This disk does not change, so that one run can be examined with several outcomes. Without
    /// `remembersUnsynced`, all outcomes equal `everythingKept`.
    package func afterCrash(_ outcome: CrashOutcome) -> InMemoryFileSystem {
        switch outcome {
        case .everythingKept:
            return afterCrash { $0 - 1 }
        case .unsyncedLost:
            return afterCrash { _ in 0 }
        case .mixed(let seed):
            var die = Die(state: seed)
            // Mostly kept, mostly lost, or anything: a fair die alone rarely shows the first two.
            let bias = die.roll(3)
            return afterCrash { count in
                switch bias {
                case 0: die.roll(8) == 0 ? die.roll(count) : count - 1
                case 1: die.roll(8) == 0 ? die.roll(count) : 0
                default: die.roll(count)
                }
            }
        }
    }

    /// The disks that a power cut at this moment may leave.
    ///
    /// - Parameters:
    ///   - maximum: the most disks.
    ///   - seed: selects among them if there are more.
    /// - Returns: the disks, and whether they are all possible ones.
    package func afterCrashes(
        atMost maximum: Int,
        seed: UInt64
    ) -> (disks: [InMemoryFileSystem], isExhaustive: Bool) {
        var disks: [InMemoryFileSystem] = []
        var odometer = Odometer()
        repeat {
            if disks.count == maximum {
                let sampled = [afterCrash(.everythingKept), afterCrash(.unsyncedLost)]
                let seeds = (0..<UInt64(max(0, maximum - 2))).map { seed &+ $0 &* 0x1_0000_0001 }
                return (sampled + seeds.map { afterCrash(.mixed(seed: $0)) }, false)
            }
            disks.append(afterCrash { odometer.next($0) })
        } while odometer.advance()
        return (disks, true)
    }

    /// Makes a disk of states that `choose` selects: it gets the number of states in order of time,
    /// and returns the index of one.
    private func afterCrash(_ choose: (Int) -> Int) -> InMemoryFileSystem {
        var state = state.withLock { $0 }
        state.beginAnew()
        state.settle(choose)
        return InMemoryFileSystem(state: state)
    }

    /// Syncs everything, as if a long time had passed.
    package func syncEverything() {
        state.withLock { state in
            for number in state.files.keys { state.files[number]?.unsynced = UnsyncedPages() }
            for number in state.directories.keys {
                state.directories[number]?.unsynced = UnsyncedNames()
            }
        }
    }

    /// Runs `body` and returns the disk as it was before each change, and at the end.
    package func crashPoints(_ body: () throws -> Void) rethrows -> [InMemoryFileSystem] {
        state.withLock { $0.crashPoints = [] }
        defer { state.withLock { $0.crashPoints = nil } }
        try body()
        let states = state.withLock { state in
            state.recordCrashPoint()
            return state.crashPoints ?? []
        }
        return states.map { InMemoryFileSystem(state: $0) }
    }
}

extension InMemoryFileSystem.State {
    mutating func recordCrashPoint() {
        var copy = self
        copy.crashPoints = nil
        crashPoints?.append(copy)
    }

    /// Resets the state of processes: nothing is open, no failure is scheduled.
    fileprivate mutating func beginAnew() {
        handles = [:]
        locks = [:]
        shares = [:]
        failures = []
        calls = []
        changeCount = 0
        changesLeft = nil
        crashPoints = nil
        for number in files.keys {
            files[number]?.opens = 0
        }
    }

    /// Selects one state for everything that was not synced.
    fileprivate mutating func settle(_ choose: (Int) -> Int) {
        for number in directories.keys.sorted() {
            guard let directory = directories[number] else { continue }
            let names = directory.unsynced.settled(directory.names, choosing: choose)
            directories[number] = InMemoryFileSystem.Directory(names: names)
        }
        removeUnreachable()
        for number in files.keys.sorted() {
            guard let file = files[number] else { continue }
            files[number]?.content = file.unsynced.settled(file.content, choosing: choose)
            files[number]?.unsynced = UnsyncedPages()
            files[number]?.isGone = false
        }
        recount()
    }

    private mutating func removeUnreachable() {
        var reachable: Set<InMemoryFileSystem.Node> = [.directory(0)]
        var rest = [0]
        while let number = rest.popLast() {
            for node in directories[number]?.names.values ?? [:].values
            where reachable.insert(node).inserted {
                if case .directory(let child) = node { rest.append(child) }
            }
        }
        files = files.filter { reachable.contains(.file($0.key)) }
        directories = directories.filter { reachable.contains(.directory($0.key)) }
    }
}

/// Enumerates all sequences of choices; a choice may determine the number of later ones.
private struct Odometer {
    private var wheels: [(position: Int, count: Int)] = []
    private var cursor = 0

    mutating func next(_ count: Int) -> Int {
        defer { cursor += 1 }
        if cursor == wheels.count { wheels.append((0, count)) }
        return wheels[cursor].position
    }

    /// - Returns: false when all sequences are done.
    mutating func advance() -> Bool {
        cursor = 0
        while let last = wheels.popLast() {
            guard last.position + 1 < last.count else { continue }
            wheels.append((last.position + 1, last.count))
            return true
        }
        return false
    }
}

/// SplitMix64.
private struct Die {
    var state: UInt64

    mutating func roll(_ count: Int) -> Int {
        state &+= 0x9E37_79B9_7F4A_7C15
        var mixed = (state ^ state >> 30) &* 0xBF58_476D_1CE4_E5B9
        mixed = (mixed ^ mixed >> 27) &* 0x94D0_49BB_1331_11EB
        return Int((mixed ^ mixed >> 31) % UInt64(max(count, 1)))
    }
}
