import TieredCache

extension InMemoryFileSystem {
    /// A disk as a power cut at this moment may leave it: nothing open, nothing locked.
    ///
    /// This disk stays as it is, so that one run can be looked at with several outcomes.
    public func afterCrash(_ outcome: CrashOutcome) -> InMemoryFileSystem {
        var state = state.withLock { $0 }
        state.handles = [:]
        state.locks = [:]
        state.failures = []
        state.calls = []
        state.changeCount = 0
        state.changesLeft = nil
        switch outcome {
        case .everythingKept:
            state.settle { true }
        case .unsyncedLost:
            state.settle { false }
        case .mixed(let seed):
            var generator = CoinGenerator(state: seed)
            state.settle { generator.toss() }
        }
        return InMemoryFileSystem(state: state)
    }
}

extension InMemoryFileSystem.State {
    /// Decides for everything that was not synced whether it is kept.
    fileprivate mutating func settle(_ keep: () -> Bool) {
        for number in files.keys.sorted() {
            guard let file = files[number] else { continue }
            let content = file.content.torn(file.synced, keep: keep)
            files[number]?.content = content
            files[number]?.synced = content
            files[number]?.opens = 0
        }
        for number in directories.keys.sorted() {
            guard let directory = directories[number] else { continue }
            var names = directory.names
            for name in Set(names.keys).union(directory.synced.keys).sorted()
            where directory.names[name] != directory.synced[name] {
                if !keep() { names[name] = directory.synced[name] }
            }
            directories[number] = InMemoryFileSystem.Directory(names: names, synced: names)
        }
        removeUnreachable()
    }

    private mutating func removeUnreachable() {
        let named = Set(directories.values.flatMap(\.names.values))
        for number in files.keys where !named.contains(.file(number)) {
            files[number] = nil
        }
    }
}

/// SplitMix64.
private struct CoinGenerator {
    var state: UInt64

    mutating func toss() -> Bool {
        state &+= 0x9E37_79B9_7F4A_7C15
        var mixed = (state ^ state >> 30) &* 0xBF58_476D_1CE4_E5B9
        mixed = (mixed ^ mixed >> 27) &* 0x94D0_49BB_1331_11EB
        return (mixed ^ mixed >> 31) & 1 == 1
    }
}
