/// Decides which of a ranked list of items is fetched next.
///
/// Fetches only while the player has enough media ahead; a new ranking replaces the old one at
/// once. Performs no I/O and reads no clock.
///
/// States of an item: `waiting` → `running` → `done` or `failed`; `running` → `waiting` when the
/// player needs the network; an item that leaves the ranking is forgotten, and cancelled if it
/// runs.
struct PrefetchPlanner {
    /// An action of the runner.
    enum Action: Hashable, Sendable {
        case start(CacheKey, bytes: Int64)
        case cancel(CacheKey)
    }

    private enum State: Hashable {
        case waiting
        /// With the number of bytes granted to it.
        case running(Int64)
        case done(Int64)

        var isRunning: Bool {
            if case .running = self { true } else { false }
        }

        /// With the number of bytes that it has stored nevertheless.
        case failed(Int64)
    }

    let options: PrefetchOptions
    private var ranking: [CacheKey] = []
    private var states: [CacheKey: State] = [:]
    /// Cancelled items that have not ended yet.
    private var leaving: Set<CacheKey> = []
    private var playback = PlaybackReserve.nothingPlaying

    init(options: PrefetchOptions) {
        self.options = options
    }

    /// The bytes fetched for the items of the ranking, and granted to running ones.
    var bytesInUse: Int64 {
        states.values.reduce(0) { sum, state in
            switch state {
            case .running(let bytes), .done(let bytes), .failed(let bytes): sum.clampedSum(bytes)
            case .waiting: sum
            }
        }
    }

    /// The ranking has changed, for example after a swipe; the most probable item comes first.
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

    /// The playback reserve has changed.
    mutating func didMeasure(_ reserve: PlaybackReserve) -> [Action] {
        playback = reserve
        guard reserve.isShort(of: options) else { return startMore() }
        return running().map { key in
            states[key] = .waiting
            return cancel(key)
        }
    }

    /// The head of an item has arrived, and its player may need bytes at its end.
    ///
    /// - Parameters:
    ///   - key: the item.
    ///   - bytes: the maximum number of bytes wanted.
    /// - Returns: the number of bytes granted within the budget.
    mutating func didReachTail(_ key: CacheKey, wanting bytes: Int64) -> Int64 {
        guard case .running(let promised) = states[key], !leaving.contains(key) else { return 0 }
        let granted = min(max(0, bytes), options.budget - bytesInUse)
        guard granted >= options.leastBytes else { return 0 }
        states[key] = .running(promised + granted)
        return granted
    }

    /// An item was fetched, or was stored before.
    mutating func didFinish(_ key: CacheKey, bytes: Int64) -> [Action] {
        didReturn(key, as: .done(max(0, bytes)))
    }

    /// An item could not be fetched completely; it is not retried in this ranking.
    ///
    /// - Parameters:
    ///   - key: the item.
    ///   - bytes: the number of its stored bytes; nil if unknown, which counts all granted bytes.
    /// - Returns: the actions to perform.
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

    /// Cancels the least probable running items if more probable ones wait.
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

    /// Whether running prefetches must be cancelled: below half of the reserve that starts them.
    fileprivate func isShort(of options: PrefetchOptions) -> Bool {
        switch self {
        case .nothingPlaying: false
        case .duration(let ahead): ahead < options.enoughDuration / 2
        case .bytes(let ahead): ahead < options.enoughBytes / 2
        }
    }
}
