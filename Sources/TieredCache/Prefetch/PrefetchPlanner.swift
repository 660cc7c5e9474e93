/// Decides which of a ranked list of items is fetched next, before anybody asks for it.
///
/// Only while what plays has enough ahead; a new ranking takes the place of the old one at once.
/// Performs no I/O and reads no clock.
///
/// States of an item: `waiting` → `running` → `done` or `failed`; `running` → `waiting` when what
/// plays needs the line; an item that leaves the ranking is forgotten, and cancelled if it runs.
struct PrefetchPlanner {
    /// What the runner has to do.
    enum Action: Hashable, Sendable {
        case start(CacheKey, bytes: Int64)
        case cancel(CacheKey)
    }

    private enum State: Hashable {
        case waiting
        /// With the bytes that it may bring.
        case running(Int64)
        case done(Int64)

        var isRunning: Bool {
            if case .running = self { true } else { false }
        }

        /// With the bytes that it has brought all the same.
        case failed(Int64)
    }

    let options: PrefetchOptions
    private var ranking: [CacheKey] = []
    private var states: [CacheKey: State] = [:]
    /// Cancelled, and not yet back.
    private var leaving: Set<CacheKey> = []
    private var playback = PlaybackReserve.nothingPlaying

    init(options: PrefetchOptions) {
        self.options = options
    }

    /// Bytes fetched for the items of the ranking, and promised to those that run.
    var bytesInUse: Int64 {
        states.values.reduce(0) { sum, state in
            switch state {
            case .running(let bytes), .done(let bytes), .failed(let bytes): sum.clampedSum(bytes)
            case .waiting: sum
            }
        }
    }

    /// The list of what comes next has changed, as after a swipe; the most likely comes first.
    mutating func didRank(_ keys: [CacheKey]) -> [Action] {
        var seen: Set<CacheKey> = []
        ranking = keys.filter { seen.insert($0).inserted }
        var actions: [Action] = []
        for (key, state) in states where !seen.contains(key) {
            states[key] = nil
            if state.isRunning { actions.append(cancel(key)) }
        }
        for key in ranking where states[key] == nil { states[key] = .waiting }
        return actions + makeRoom() + startMore()
    }

    /// What plays has more or less ahead than before.
    mutating func didMeasure(_ reserve: PlaybackReserve) -> [Action] {
        playback = reserve
        guard reserve.isShort(of: options) else { return startMore() }
        return running().map { key in
            states[key] = .waiting
            return cancel(key)
        }
    }

    /// The head of an item has come, and what its player needs besides may lie at its end.
    ///
    /// - Parameters:
    ///   - key: the item.
    ///   - bytes: how much that may be.
    /// - Returns: how much of it the budget has room for.
    mutating func didReachTail(_ key: CacheKey, wanting bytes: Int64) -> Int64 {
        guard case .running(let promised) = states[key], !leaving.contains(key) else { return 0 }
        let granted = min(max(0, bytes), options.budget - bytesInUse)
        guard granted >= options.leastBytes else { return 0 }
        states[key] = .running(promised + granted)
        return granted
    }

    /// An item was fetched, or was stored already.
    mutating func didFinish(_ key: CacheKey, bytes: Int64) -> [Action] {
        didReturn(key, as: .done(max(0, bytes)))
    }

    /// An item could not be fetched as far as it was to be; it is not tried again in this ranking.
    ///
    /// - Parameters:
    ///   - key: the item.
    ///   - bytes: what is stored of it; nil if nobody knows, and all that was promised counts.
    /// - Returns: what follows.
    mutating func didFail(_ key: CacheKey, bytes: Int64?) -> [Action] {
        guard case .running(let promised) = states[key] else {
            return didReturn(key, as: .failed(0))
        }
        return didReturn(key, as: .failed(max(0, min(bytes ?? promised, promised))))
    }

    private mutating func didReturn(_ key: CacheKey, as state: State) -> [Action] {
        guard leaving.remove(key) == nil else { return startMore() }
        if states[key]?.isRunning == true { states[key] = state }
        return startMore()
    }

    private func running() -> [CacheKey] {
        ranking.filter { states[$0]?.isRunning == true }
    }

    private mutating func cancel(_ key: CacheKey) -> Action {
        leaving.insert(key)
        return .cancel(key)
    }

    /// Takes the line from the least likely items where more likely ones wait.
    private mutating func makeRoom() -> [Action] {
        let front = ranking.filter { states[$0]?.isRunning == true || states[$0] == .waiting }
            .prefix(options.maximumRunning)
        return running().filter { !front.contains($0) }.map { key in
            states[key] = .waiting
            return cancel(key)
        }
    }

    private mutating func startMore() -> [Action] {
        guard playback.isEnough(for: options) else { return [] }
        var actions: [Action] = []
        var count = running().count + leaving.count
        for key in ranking where states[key] == .waiting && !leaving.contains(key) {
            guard count < options.maximumRunning else { break }
            let bytes = min(options.headBytes, options.budget - bytesInUse)
            guard bytes >= options.leastBytes else { break }
            states[key] = .running(bytes)
            count += 1
            actions.append(.start(key, bytes: bytes))
        }
        return actions
    }
}

extension PlaybackReserve {
    /// Whether prefetching may begin.
    fileprivate func isEnough(for options: PrefetchOptions) -> Bool {
        switch self {
        case .nothingPlaying: true
        case .duration(let ahead): ahead > options.enoughDuration
        case .bytes(let ahead): ahead > options.enoughBytes
        }
    }

    /// Whether prefetching under way must give way: half of what lets it begin.
    fileprivate func isShort(of options: PrefetchOptions) -> Bool {
        switch self {
        case .nothingPlaying: false
        case .duration(let ahead): ahead < options.enoughDuration / 2
        case .bytes(let ahead): ahead < options.enoughBytes / 2
        }
    }
}
