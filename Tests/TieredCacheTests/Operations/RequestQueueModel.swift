@testable import TieredCache

/// Resources and their queue, written as plainly as possible: lists, filters and sorting.
///
/// It says what each input must lead to. It shares no code with the values that it judges.
struct RequestQueueModel {
    enum Action: Equatable {
        case queue(RequestQueueStateMachine.Action)
        /// A subscription ends.
        case complete(SubscriberID, Completion)
    }

    /// How a subscription ends.
    enum Completion: Equatable {
        case finished
        case failed(CacheError.Code)
    }

    /// A subscriber that has joined a transfer, or made one; nil where the queue refuses it.
    struct Join {
        let subscriber: SubscriberID
        let transfer: TransferID?
        let isNew: Bool
        let end: Int64
    }

    enum State: Equatable {
        case queued
        case running
        case yielded
        case stalled
        case resuming
        case cancelledWithSlot
        case cancelledWithPlace
        case cancelledWithoutSlot
    }

    struct Transfer {
        let id: TransferID
        let group: TransferGroup
        let host: String
        let start: Int64
        var position: Int64
        var end: Int64
        var state: State
        var isPaused = false
        var subscribers: [SubscriberID: RequestPriority]
        var waitingSince: Int
        var wasPreempted = false
        var hasResponded = false
        var horizons: [SubscriberID: Int64] = [:]
        /// What it keeps once its last subscriber has left.
        var lastHorizon: Int64 = 0

        var horizon: Int64 { horizons.values.max() ?? lastHorizon }
        var priority: RequestPriority { subscribers.values.max() ?? .background }
        var hasSlot: Bool { state == .running || state == .cancelledWithSlot }
        var hasPlace: Bool { hasSlot || isLeased }
        var isLeased: Bool { state == .yielded || state == .cancelledWithPlace }
        var lane: String { "\(priority) \(state)" }
        var isLive: Bool {
            ![.cancelledWithSlot, .cancelledWithPlace, .cancelledWithoutSlot].contains(state)
        }
    }

    let limits: RequestQueueStateMachine.Limits
    private(set) var transfers: [Transfer] = []
    private(set) var isSuspended = false
    private(set) var isShutDown = false
    private var arrivals = 0
    private var overtakes = 0
    private var overtakesByHost: [String: Int] = [:]
    private var overtakesInLane: [String: Int] = [:]
    private var hasDrained = false
    private var paused: Set<TransferID> = []

    init(limits: RequestQueueStateMachine.Limits) {
        self.limits = limits
    }

    func transfer(_ id: TransferID) -> Transfer? { transfers.first { $0.id == id } }

    var slotsInUse: Int { transfers.count { $0.hasSlot } }
    var slotsYielded: Int { transfers.count { $0.isLeased } }

    // MARK: - Inputs: each returns the actions that must follow

    /// The transfer that must be joined, if any.
    func joinable(_ group: TransferGroup, _ offset: Int64, _ maximumDistance: Int64?) -> TransferID?
    {
        transfers
            .filter { $0.isLive && $0.group == group }
            .filter { $0.position <= offset && offset < $0.end }
            .filter { offset - $0.position <= maximumDistance ?? .max }
            .filter { transfer in
                guard maximumDistance != nil, offset > transfer.horizon else { return true }
                return offset - max(transfer.position, transfer.horizon) <= 256 << 10
            }
            .sorted { ($0.position, $1.id) > ($1.position, $0.id) }
            .first?.id
    }

    /// Where a new transfer must end that leaves the rest to others: with the block before the next
    /// byte that another one is to store, of whatever group.
    func end(_ key: CacheKey, _ offset: Int64, _ end: Int64) -> Int64 {
        let next = transfers.compactMap { transfer -> Int64? in
            guard transfer.isLive, transfer.group.key == key, transfer.position > offset,
                transfer.position < transfer.end
            else { return nil }
            let first = max(transfer.start, transfer.position / 65_536 * 65_536)
            return first > offset ? first : transfer.position
        }
        return min(end, next.min().map { ($0 + 65_535) / 65_536 * 65_536 } ?? end)
    }

    mutating func join(
        _ join: Join,
        group: TransferGroup,
        coverage: Range<Int64>,
        host: String,
        priority: RequestPriority,
        horizon: Int64
    ) -> [Action] {
        guard !isShutDown else { return [.complete(join.subscriber, .failed(.shutDown))] }
        guard let id = join.transfer else { return [] }
        guard join.isNew else {
            update(id) { transfer in
                transfer.subscribers[join.subscriber] = priority
                transfer.horizons[join.subscriber] = horizon
            }
            return makeRoom(id)
        }
        arrivals += 1
        transfers.append(
            Transfer(
                id: id,
                group: group,
                host: host,
                start: coverage.lowerBound,
                position: coverage.lowerBound,
                end: join.end,
                state: .queued,
                subscribers: [join.subscriber: priority],
                waitingSince: arrivals,
                horizons: [join.subscriber: horizon]
            )
        )
        return fill() + makeRoom(id)
    }

    mutating func leave(_ subscriber: SubscriberID) -> [Action] {
        guard let transfer = transfers.first(where: { $0.subscribers[subscriber] != nil }) else {
            return []
        }
        update(transfer.id) { transfer in
            transfer.lastHorizon = transfer.horizon
            transfer.subscribers[subscriber] = nil
            transfer.horizons[subscriber] = nil
        }
        guard transfer.subscribers.count == 1 else {
            return [.complete(subscriber, .failed(.cancelled))]
        }
        return [.complete(subscriber, .failed(.cancelled))] + abandon(transfer.id)
    }

    mutating func setPriority(
        _ priority: RequestPriority,
        of subscriber: SubscriberID
    ) -> [Action] {
        guard let transfer = transfers.first(where: { $0.subscribers[subscriber] != nil }),
            transfer.subscribers[subscriber] != priority
        else { return [] }
        update(transfer.id) { $0.subscribers[subscriber] = priority }
        return makeRoom(transfer.id)
    }

    mutating func extend(_ subscriber: SubscriberID, for range: Range<Int64>) -> Bool {
        guard let transfer = transfers.first(where: { $0.subscribers[subscriber] != nil }),
            range.lowerBound >= transfer.position - transfer.position % 65_536,
            range.lowerBound < transfer.end
        else { return false }
        update(transfer.id) { transfer in
            let old = transfer.horizons[subscriber] ?? 0
            transfer.horizons[subscriber] = max(old, range.upperBound)
        }
        return true
    }

    /// Whether a subscriber wants more by now.
    func isWanted(_ id: TransferID) -> Bool {
        guard let transfer = transfer(id) else { return true }
        return transfer.horizon >= transfer.end || transfer.position >= transfer.end
            || transfer.horizon > transfer.position
    }

    /// The transfers whose work waits until a subscriber wants more.
    var waiting: Set<TransferID> {
        paused.filter { transfer($0)?.isLive == true && !isWanted($0) }
    }

    mutating func pause(_ id: TransferID) { paused.insert(id) }

    /// One that went on by the last input waits no more; what counts overtakes ends with those that
    /// wait.
    mutating func settle() {
        paused = waiting
        let queued = transfers.filter { [.queued, .resuming].contains($0.state) }
        overtakesByHost = overtakesByHost.filter { host, _ in queued.contains { $0.host == host } }
    }

    mutating func cancel(
        _ id: TransferID,
        _ code: CacheError.Code = .cancelled
    ) -> [Action] {
        guard let transfer = transfer(id), transfer.isLive else { return [] }
        update(id) { transfer in
            transfer.lastHorizon = transfer.horizon
            (transfer.subscribers, transfer.horizons) = ([:], [:])
        }
        let completions = transfer.subscribers.keys.sorted()
            .map { Action.complete($0, .failed(code)) }
        return completions + abandon(id)
    }

    /// Ends all transfers of some resource, or of all.
    mutating func cancelAll(of key: CacheKey?, _ code: CacheError.Code = .cancelled) -> [Action] {
        transfers.filter { key == nil || $0.group.key == key }.map(\.id).sorted()
            .flatMap { cancel($0, code) }
    }

    mutating func shutDown() -> [Action] {
        guard !isShutDown else { return [] }
        isShutDown = true
        return drained()
    }

    mutating func respond(_ id: TransferID) { update(id) { $0.hasResponded = true } }

    mutating func advance(_ id: TransferID, to position: Int64) {
        update(id) { transfer in
            transfer.position = max(transfer.position, position)
        }
    }

    mutating func shrink(_ id: TransferID, to end: Int64) {
        update(id) { $0.end = min($0.end, end) }
    }

    mutating func stall(_ id: TransferID) -> [Action] {
        guard transfer(id)?.state == .running else { return [] }
        update(id) { $0.state = .stalled }
        return fill()
    }

    var mayKeepConnection: Bool {
        transfers.count { $0.isPaused && [.stalled, .resuming].contains($0.state) }
            < limits.maximumDownloads
    }

    mutating func stallIfRoom(_ id: TransferID) -> [Action] {
        guard mayKeepConnection else { return [] }
        update(id) { $0.isPaused = true }
        return stall(id)
    }

    mutating func unstall(_ id: TransferID) -> [Action] {
        if transfer(id)?.state == .running { return [.queue(.grant(id))] }
        guard transfer(id)?.state == .stalled || transfer(id)?.state == .yielded else { return [] }
        arrivals += 1
        let arrival = arrivals
        update(id) { transfer in
            transfer.state = .resuming
            transfer.waitingSince = arrival
        }
        return fill() + makeRoom(id)
    }

    mutating func finish(_ id: TransferID) -> [Action] {
        guard let transfer = transfer(id) else { return [] }
        transfers.removeAll { $0.id == id }
        let completions = transfer.subscribers.keys.sorted().map { Action.complete($0, .finished) }
        return completions + fill() + drained()
    }

    mutating func suspend() { isSuspended = true }

    mutating func resume() -> [Action] {
        isSuspended = false
        return fill()
    }

    // MARK: - Rules

    private mutating func update(_ id: TransferID, _ body: (inout Transfer) -> Void) {
        guard let index = transfers.firstIndex(where: { $0.id == id }) else { return }
        body(&transfers[index])
    }

    private mutating func abandon(_ id: TransferID) -> [Action] {
        if transfer(id)?.state == .queued {
            transfers.removeAll { $0.id == id }
            return [.queue(.drop(id))] + drained()
        }
        update(id) { transfer in
            transfer.state =
                transfer.hasSlot
                ? .cancelledWithSlot
                : transfer.isLeased ? .cancelledWithPlace : .cancelledWithoutSlot
        }
        return [.queue(.cancel(id))]
    }

    mutating func drained() -> [Action] {
        guard isShutDown, transfers.isEmpty, !hasDrained else { return [] }
        hasDrained = true
        return [.queue(.drained)]
    }

    private mutating func fill() -> [Action] {
        var actions: [Action] = []
        while slotsInUse < limits.maximumDownloads, let next = next() {
            update(next.id) { transfer in
                transfer.state = .running
                transfer.isPaused = false
            }
            actions.append(.queue(next.state == .resuming ? .grant(next.id) : .start(next.id)))
        }
        return actions
    }

    private mutating func makeRoom(_ id: TransferID) -> [Action] {
        guard let transfer = transfer(id), transfer.priority == .playing,
            transfer.state == .resuming || transfer.state == .queued && !isSuspended && !isShutDown
        else { return [] }
        let ofHost = transfers.filter { $0.hasPlace && $0.host == transfer.host }
        let isHostFull = ofHost.count >= limits.maximumPerHost
        let losers = transfers.filter { other in
            other.state == .running && !other.wasPreempted && other.priority <= .prefetch
                && (other.host == transfer.host || !isHostFull)
        }
        let isIdle = losers.contains { $0.priority == .background }
        let lowest = losers.filter { ($0.priority == .background) == isIdle }
        guard let loser = lowest.map(\.id).max() else {
            return isHostFull ? [] : lease(to: transfer)
        }
        update(loser) { transfer in
            transfer.state = .stalled
            transfer.wasPreempted = true
        }
        return [.queue(.pause(loser))] + fill()
    }

    private mutating func lease(to transfer: Transfer) -> [Action] {
        let unanswered = transfers.filter {
            $0.state == .running && !$0.hasResponded && $0.host != transfer.host
        }
        guard slotsInUse == limits.maximumDownloads, slotsYielded < limits.maximumYielded,
            let yielder = unanswered.map(\.id).min()
        else { return [] }
        update(yielder) { $0.state = .yielded }
        return [.queue(.pause(yielder))] + fill()
    }

    /// The higher one goes first.
    private func rank(_ transfer: Transfer) -> [Int] {
        let slotsOfResource = transfers.count { $0.hasSlot && $0.group.key == transfer.group.key }
        return [
            transfer.priority.rawValue, transfer.state == .resuming ? 1 : 0, -slotsOfResource,
            -transfer.waitingSince,
        ]
    }

    private mutating func next() -> Transfer? {
        let eligible = transfers.filter { transfer in
            let inUse = transfers.count { $0.hasPlace && $0.host == transfer.host }
            return inUse < limits.maximumPerHost
                && (transfer.state == .resuming
                    || (transfer.state == .queued && !isSuspended && !isShutDown))
        }
        let oldest = eligible.min { $0.waitingSince < $1.waitingSince }
        var first = eligible.max { rank($0).lexicographicallyPrecedes(rank($1)) }
        let lane = first?.lane ?? ""
        let front = eligible.filter { $0.lane == lane }.min { $0.waitingSince < $1.waitingSince }
        if overtakesInLane[lane, default: 0] >= 6 { first = front }
        guard let oldest, let first else { return nil }
        let patience = limits.maximumOvertakes * (first.priority == .playing ? 8 : 1)
        var next = overtakes >= patience ? oldest : first
        let neighbours = eligible.filter { $0.host == next.host }
        let oldestOfHost = neighbours.min { $0.waitingSince < $1.waitingSince }
        if let oldestOfHost, overtakesByHost[next.host, default: 0] >= patience {
            next = oldestOfHost
        }
        overtakes = next.id == oldest.id ? 0 : overtakes + 1
        overtakesByHost[next.host, default: 0] += 1
        if next.id == oldestOfHost?.id { overtakesByHost[next.host] = 0 }
        if next.lane == lane { overtakesInLane[lane, default: 0] += 1 }
        if next.id == front?.id { overtakesInLane[lane] = 0 }
        return next
    }
}
