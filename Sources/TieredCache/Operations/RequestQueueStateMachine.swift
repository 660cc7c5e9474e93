/// Decides which downloads run, who shares them, and who is told what.
///
/// Performs no effect and reads no clock. Every input returns the actions that follow from it, in
/// the order in which they are to be carried out; the runner calls it under a lock and acts after.
/// The decisions "the last subscriber has left, cancel" and "nobody may join any more" are one
/// step, so a joiner that comes too late gets a flight of its own.
package struct RequestQueueStateMachine {
    /// What the runner has to do.
    package enum Action: Equatable {
        /// Run the flight's work.
        case start(FlightID)
        /// Tell the stalled flight that it has a slot again.
        case grant(FlightID)
        /// Take the slot of the running flight: it goes on when it has one again.
        case pause(FlightID)
        /// Cancel the running work; the flight ends when the work has returned.
        case cancel(FlightID)
        /// Forget work that never started.
        case drop(FlightID)
        /// Tell a subscriber how it ended. Each subscriber gets this exactly once.
        case complete(SubscriberID, Completion)
        /// Shut down, and the last flight has ended. Given once.
        case drained
    }

    /// How a subscription ended.
    package enum Completion: Equatable {
        /// The flight's work returned; its result is the subscriber's.
        case finished
        /// The subscriber, or somebody for all of them, cancelled.
        case cancelled
        /// The queue was shut down.
        case shutDown
    }

    /// What became of a request to join.
    package struct Join {
        package let subscriber: SubscriberID
        /// The flight joined, or nil if the queue is shut down.
        package let flight: FlightID?
        /// Whether the flight was made for this subscriber.
        package let isNew: Bool
        /// Where what the flight brings ends, as far as that is known.
        package let end: Int64
        package let actions: [Action]
    }

    /// How many flights may run, and how patient they must be.
    package struct Limits {
        package let maximumDownloads: Int
        /// Those that wait for a first byte without a slot count as well.
        package let maximumPerHost: Int
        /// How many may wait for a first byte without a slot, because it was lent to what plays.
        package let maximumLent: Int
        /// How many starts in a row may pass the flight that has waited longest.
        package let maximumOvertakes: Int

        package init(
            maximumDownloads: Int = 6,
            maximumPerHost: Int = 6,
            maximumLent: Int = 64,
            maximumOvertakes: Int = 32
        ) {
            precondition(maximumDownloads > 0 && maximumPerHost > 0 && maximumOvertakes > 0)
            precondition(maximumLent >= 0)
            self.maximumDownloads = maximumDownloads
            self.maximumPerHost = maximumPerHost
            self.maximumLent = maximumLent
            self.maximumOvertakes = maximumOvertakes
        }
    }

    /// What a flight takes of the limits.
    enum Holding: Equatable {
        /// One of the downloads, and one of its host's.
        case slot
        /// One of its host's, so that a host that hangs does not get more and more requests.
        case place
        case nothing
    }

    struct Flight {
        enum State: Equatable {
            case queued  // → running, gone
            case running  // → stalled, lent, cancelled, gone
            /// It waits for its first byte; its slot was given to what plays.
            case lent  // → resuming, cancelled, gone
            case stalled  // → resuming, cancelled, gone
            case resuming  // → running, cancelled, gone
            case cancelled(Holding)  // → gone
        }

        let group: FlightGroup
        let host: String
        var coverage: Range<Int64>
        var position: Int64
        var state = State.queued
        var subscribers: Set<SubscriberID> = []
        var priorities = PriorityCounts()
        var wasPreempted = false
        /// Whether the origin has begun to answer.
        var hasBytes = false
        /// Where it ends unless a request joins: its last subscriber has stopped reading.
        var lingeringEnd: Int64?

        var holding: Holding {
            switch state {
            case .running: .slot
            case .lent: .place
            case .cancelled(let holding): holding
            case .queued, .stalled, .resuming: .nothing
            }
        }
        var isWaiting: Bool { state == .queued || state == .resuming }
    }

    struct Subscriber {
        let flight: FlightID
        var priority: RequestPriority
    }

    let limits: Limits
    var flights: [FlightID: Flight] = [:]
    var subscribers: [SubscriberID: Subscriber] = [:]
    /// The flights that may be joined: all but the cancelled.
    var groups: [FlightGroup: [FlightID]] = [:]
    var waiting: WaitingFlights
    var slotsInUse = 0
    /// Those that are lent count as well.
    var placesInUseByHost: [String: Int] = [:]
    var slotsLent = 0
    var isSuspended = false
    var isShutDown = false
    private var hasDrained = false
    private var lastFlight: UInt64
    private var lastSubscriber: UInt64 = 0

    /// Creates a machine without flights.
    ///
    /// - Parameters:
    ///   - limits: how many may run.
    ///   - firstFlight: what the names of its flights begin at; another machine's are others.
    package init(limits: Limits = Limits(), firstFlight: UInt64 = 0) {
        self.limits = limits
        lastFlight = firstFlight
        waiting = WaitingFlights(maximumOvertakes: limits.maximumOvertakes)
    }

    mutating func makeFlightID() -> FlightID {
        lastFlight += 1
        return FlightID(number: lastFlight)
    }

    mutating func makeSubscriberID() -> SubscriberID {
        lastSubscriber += 1
        return SubscriberID(number: lastSubscriber)
    }

    /// Starts whatever has a slot, in order.
    mutating func fillSlots() -> [Action] {
        var actions: [Action] = []
        while slotsInUse < limits.maximumDownloads,
            let id = waiting.popNext(includesQueued: !isSuspended)
        {
            let resumes = flights[id]?.state == .resuming
            takeSlot(of: id)
            actions.append(resumes ? .grant(id) : .start(id))
        }
        return actions
    }

    private mutating func takeSlot(of id: FlightID) {
        guard let host = flights[id]?.host else {
            preconditionFailure("\(id) waited, but is unknown")
        }
        flights[id]?.state = .running
        slotsInUse += 1
        let inUse = placesInUseByHost[host, default: 0] + 1
        placesInUseByHost[host] = inUse
        if inUse >= limits.maximumPerHost { waiting.setHost(host, isOpen: false) }
    }

    /// Gives back what a flight has held until now.
    mutating func release(_ holding: Holding, ofHost host: String) {
        switch holding {
        case .slot: slotsInUse -= 1
        case .place: slotsLent -= 1
        case .nothing: return
        }
        let inUse = placesInUseByHost[host, default: 0] - 1
        placesInUseByHost[host] = inUse == 0 ? nil : inUse
        waiting.setHost(host, isOpen: true)
    }

    /// `.drained`, the first time that nothing is left after a shutdown.
    mutating func drainedIfIdle() -> [Action] {
        guard isShutDown, flights.isEmpty, !hasDrained else { return [] }
        hasDrained = true
        return [.drained]
    }
}

/// How many subscribers of each priority a flight has.
struct PriorityCounts {
    private var counts = [Int](repeating: 0, count: RequestPriority.allCases.count)

    /// The highest priority that somebody has; background if nobody is there.
    var highest: RequestPriority {
        counts.lastIndex { $0 > 0 }.flatMap(RequestPriority.init(rawValue:)) ?? .background
    }

    mutating func add(_ priority: RequestPriority) {
        counts[priority.rawValue] += 1
    }

    mutating func remove(_ priority: RequestPriority) {
        counts[priority.rawValue] -= 1
    }
}
