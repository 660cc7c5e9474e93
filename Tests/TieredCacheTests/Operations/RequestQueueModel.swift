@testable import TieredCache

/// The request queue written as plainly as possible: lists, filters and sorting.
///
/// It says what each input must lead to. It shares no code with the machine that it judges.
struct RequestQueueModel {
    typealias Action = RequestQueueStateMachine.Action

    enum State: Equatable {
        case queued
        case running
        case lent
        case stalled
        case resuming
        case cancelledWithSlot
        case cancelledWithPlace
        case cancelledWithoutSlot
    }

    struct Flight {
        let id: FlightID
        let group: FlightGroup
        let host: String
        var position: Int64
        var end: Int64
        var state: State
        var subscribers: [SubscriberID: RequestPriority]
        var waitingSince: Int
        var wasPreempted = false
        var hasBytes = false

        var priority: RequestPriority { subscribers.values.max() ?? .background }
        var hasSlot: Bool { state == .running || state == .cancelledWithSlot }
        var hasPlace: Bool { hasSlot || isLent }
        var isLent: Bool { state == .lent || state == .cancelledWithPlace }
        var isLive: Bool {
            ![.cancelledWithSlot, .cancelledWithPlace, .cancelledWithoutSlot].contains(state)
        }
    }

    let limits: RequestQueueStateMachine.Limits
    private(set) var flights: [Flight] = []
    private(set) var isSuspended = false
    private(set) var isShutDown = false
    private var arrivals = 0
    private var overtakes = 0
    private var overtakesByHost: [String: Int] = [:]
    private var hasDrained = false

    init(limits: RequestQueueStateMachine.Limits) {
        self.limits = limits
    }

    func flight(_ id: FlightID) -> Flight? { flights.first { $0.id == id } }

    var slotsInUse: Int { flights.count { $0.hasSlot } }
    var slotsLent: Int { flights.count { $0.isLent } }

    // MARK: - Inputs: each returns the actions that must follow

    /// The flight that must be joined, if any.
    func joinable(_ group: FlightGroup, _ offset: Int64, _ maximumDistance: Int64?) -> FlightID? {
        flights
            .filter { $0.isLive && $0.group == group }
            .filter { $0.position <= offset && offset < $0.end }
            .filter { offset - $0.position <= maximumDistance ?? .max }
            .sorted { ($0.position, $1.id) > ($1.position, $0.id) }
            .first?.id
    }

    mutating func join(
        _ join: RequestQueueStateMachine.Join,
        group: FlightGroup,
        coverage: Range<Int64>,
        host: String,
        priority: RequestPriority
    ) -> [Action] {
        guard !isShutDown else { return [.complete(join.subscriber, .shutDown)] }
        guard let id = join.flight else { return [] }
        guard join.isNew else {
            update(id) { $0.subscribers[join.subscriber] = priority }
            return makeRoom(id)
        }
        arrivals += 1
        flights.append(
            Flight(
                id: id,
                group: group,
                host: host,
                position: coverage.lowerBound,
                end: coverage.upperBound,
                state: .queued,
                subscribers: [join.subscriber: priority],
                waitingSince: arrivals
            )
        )
        return fill() + makeRoom(id)
    }

    mutating func leave(_ subscriber: SubscriberID) -> [Action] {
        guard let flight = flights.first(where: { $0.subscribers[subscriber] != nil }) else {
            return []
        }
        update(flight.id) { $0.subscribers[subscriber] = nil }
        guard flight.subscribers.count == 1 else { return [.complete(subscriber, .cancelled)] }
        return [.complete(subscriber, .cancelled), abandon(flight.id)]
    }

    mutating func setPriority(
        _ priority: RequestPriority,
        of subscriber: SubscriberID
    ) -> [Action] {
        guard let flight = flights.first(where: { $0.subscribers[subscriber] != nil }) else {
            return []
        }
        update(flight.id) { $0.subscribers[subscriber] = priority }
        return makeRoom(flight.id)
    }

    mutating func cancel(
        _ id: FlightID,
        _ completion: RequestQueueStateMachine.Completion = .cancelled
    ) -> [Action] {
        guard let flight = flight(id), flight.isLive else { return [] }
        update(id) { $0.subscribers = [:] }
        return flight.subscribers.keys.sorted().map { .complete($0, completion) } + [abandon(id)]
    }

    mutating func cancelAll(
        _ completion: RequestQueueStateMachine.Completion = .cancelled
    ) -> [Action] {
        flights.map(\.id).sorted().flatMap { cancel($0, completion) }
    }

    mutating func shutDown() -> [Action] {
        guard !isShutDown else { return [] }
        isShutDown = true
        return cancelAll(.shutDown) + drained()
    }

    mutating func advance(_ id: FlightID, to position: Int64) {
        update(id) { flight in
            if position > flight.position { flight.hasBytes = true }
            flight.position = max(flight.position, position)
        }
    }

    mutating func shrink(_ id: FlightID, to end: Int64) {
        update(id) { $0.end = min($0.end, end) }
    }

    mutating func stall(_ id: FlightID) -> [Action] {
        guard flight(id)?.state == .running else { return [] }
        update(id) { $0.state = .stalled }
        return fill()
    }

    mutating func unstall(_ id: FlightID) -> [Action] {
        if flight(id)?.state == .running { return [.grant(id)] }
        guard flight(id)?.state == .stalled || flight(id)?.state == .lent else { return [] }
        arrivals += 1
        let arrival = arrivals
        update(id) { flight in
            flight.state = .resuming
            flight.waitingSince = arrival
        }
        return fill() + makeRoom(id)
    }

    mutating func finish(_ id: FlightID) -> [Action] {
        guard let flight = flight(id) else { return [] }
        flights.removeAll { $0.id == id }
        let completions = flight.subscribers.keys.sorted().map { Action.complete($0, .finished) }
        return completions + fill() + drained()
    }

    mutating func suspend() { isSuspended = true }

    mutating func resume() -> [Action] {
        isSuspended = false
        return fill()
    }

    // MARK: - Rules

    private mutating func update(_ id: FlightID, _ body: (inout Flight) -> Void) {
        guard let index = flights.firstIndex(where: { $0.id == id }) else { return }
        body(&flights[index])
    }

    private mutating func abandon(_ id: FlightID) -> Action {
        if flight(id)?.state == .queued {
            flights.removeAll { $0.id == id }
            return .drop(id)
        }
        update(id) { flight in
            flight.state =
                flight.hasSlot
                ? .cancelledWithSlot : flight.isLent ? .cancelledWithPlace : .cancelledWithoutSlot
        }
        return .cancel(id)
    }

    private mutating func drained() -> [Action] {
        guard isShutDown, flights.isEmpty, !hasDrained else { return [] }
        hasDrained = true
        return [.drained]
    }

    private mutating func fill() -> [Action] {
        var actions: [Action] = []
        while slotsInUse < limits.maximumDownloads, let next = next() {
            update(next.id) { $0.state = .running }
            actions.append(next.state == .resuming ? .grant(next.id) : .start(next.id))
        }
        return actions
    }

    private mutating func makeRoom(_ id: FlightID) -> [Action] {
        guard let flight = flight(id), flight.priority == .playing,
            flight.state == .resuming || flight.state == .queued && !isSuspended
        else { return [] }
        let ofHost = flights.filter { $0.hasPlace && $0.host == flight.host }
        let isHostFull = ofHost.count >= limits.maximumPerHost
        let losers = flights.filter { other in
            other.state == .running && !other.wasPreempted && other.priority <= .prefetch
                && (other.host == flight.host || !isHostFull)
        }
        let isIdle = losers.contains { $0.priority == .background }
        let lowest = losers.filter { ($0.priority == .background) == isIdle }
        guard let loser = lowest.map(\.id).max() else {
            return isHostFull ? [] : lend(to: flight)
        }
        update(loser) { flight in
            flight.state = .stalled
            flight.wasPreempted = true
        }
        return [.pause(loser)] + fill()
    }

    private mutating func lend(to flight: Flight) -> [Action] {
        let unanswered = flights.filter {
            $0.state == .running && !$0.hasBytes && $0.host != flight.host
        }
        guard slotsInUse == limits.maximumDownloads, slotsLent < limits.maximumLent,
            let lender = unanswered.map(\.id).min()
        else { return [] }
        update(lender) { $0.state = .lent }
        return [.pause(lender)] + fill()
    }

    private mutating func next() -> Flight? {
        let eligible = flights.filter { flight in
            let inUse = flights.count { $0.hasPlace && $0.host == flight.host }
            return inUse < limits.maximumPerHost
                && (flight.state == .resuming || (flight.state == .queued && !isSuspended))
        }
        let oldest = eligible.min { $0.waitingSince < $1.waitingSince }
        let first = eligible.max { left, right in
            (left.priority.rawValue, left.state == .resuming ? 1 : 0, -left.waitingSince)
                < (right.priority.rawValue, right.state == .resuming ? 1 : 0, -right.waitingSince)
        }
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
        return next
    }
}
