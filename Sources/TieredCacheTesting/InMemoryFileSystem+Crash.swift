import TieredCache

/// How a disk may look after a power cut.
///
/// What was not synced may be in any of the states that it had since: each page of 4096 bytes, each
/// file's length, and each name for itself. No disk is worse, and few are as bad.
package enum CrashOutcome: Hashable, Sendable {
    /// Everything arrived: only the process died.
    case everythingKept
    /// Whatever was not synced is gone.
    case unsyncedLost
    /// Each page, length and name is in one of its states, by a die seeded with this.
    case mixed(seed: UInt64)
}

extension InMemoryFileSystem {
    /// A disk as a power cut at this moment may leave it: nothing open, nothing locked.
    ///
    /// This disk stays as it is, so that one run can be looked at with several outcomes. Only a
    /// disk that remembers what was not synced has other outcomes than `everythingKept`.
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
    ///   - maximum: how many at most.
    ///   - seed: chooses among them where there are more.
    /// - Returns: the disks, and whether they are all that there are.
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

    /// `choose` gets the number of states, in time, and says which one is left.
    private func afterCrash(_ choose: (Int) -> Int) -> InMemoryFileSystem {
        var state = state.withLock { $0 }
        state.beginAnew()
        state.settle(choose)
        return InMemoryFileSystem(state: state)
    }

    /// Makes everything survive a power cut, as if a long time had passed.
    package func syncEverything() {
        state.withLock { state in
            for number in state.files.keys { state.files[number]?.unsynced = UnsyncedPages() }
            for number in state.directories.keys {
                state.directories[number]?.unsynced = UnsyncedNames()
            }
        }
    }

    /// Runs `body` and gives the disk as it was before each change that it made, and at its end.
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

    /// Forgets the processes: nothing is open, nothing fails.
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

    /// Decides for everything that was not synced in which of its states it is.
    fileprivate mutating func settle(_ choose: (Int) -> Int) {
        for number in directories.keys.sorted() {
            guard let directory = directories[number] else { continue }
            let names = directory.unsynced.settled(directory.names, choose)
            directories[number] = InMemoryFileSystem.Directory(names: names)
        }
        removeUnreachable()
        for number in files.keys.sorted() {
            guard let file = files[number] else { continue }
            files[number]?.content = file.unsynced.settled(file.content, choose)
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

/// Goes through all choices, where each may decide which ones follow.
private struct Odometer {
    private var wheels: [(position: Int, count: Int)] = []
    private var cursor = 0

    mutating func next(_ count: Int) -> Int {
        defer { cursor += 1 }
        if cursor == wheels.count { wheels.append((0, count)) }
        return wheels[cursor].position
    }

    /// - Returns: false when every way was gone.
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
