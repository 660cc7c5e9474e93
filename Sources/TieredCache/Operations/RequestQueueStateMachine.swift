/// Decides which downloads run, who shares them, and who is told what.
///
/// Performs no effect and reads no clock. Every input returns the actions that follow from it, in
/// the order in which they are to be carried out; the runner calls it under a lock and acts after.
/// The decisions "the last subscriber has left, cancel" and "nobody may join any more" are one
/// step, so a joiner that comes too late gets a transfer of its own.
package struct RequestQueueStateMachine {
    /// What the runner has to do.
    package enum Action: Equatable {
        /// Run the transfer's work.
        case start(TransferID)
        /// Tell the stalled transfer that it has a slot again.
        case grant(TransferID)
        /// Take the slot of the running transfer: it goes on when it has one again.
        case pause(TransferID)
        /// Cancel the running work; the transfer ends when the work has returned.
        case cancel(TransferID)
        /// Forget work that never started.
        case drop(TransferID)
        /// Tell a subscriber how it ended. Each subscriber gets this exactly once.
        case complete(SubscriberID, Completion)
        /// Shut down, and the last transfer has ended. Given once.
        case drained
    }

    /// How a subscription ended.
    package enum Completion: Equatable {
        /// The transfer's work returned; its result is the subscriber's.
        case finished
        /// The subscriber, or somebody for all of them, cancelled.
        case cancelled
        /// The queue was shut down.
        case shutDown
    }

    /// What became of a request to join.
    package struct Join {
        package let subscriber: SubscriberID
        /// The transfer joined, or nil if the queue is shut down.
        package let transfer: TransferID?
        /// Whether the transfer was made for this subscriber.
        package let isNew: Bool
        /// Where what the transfer brings ends, as far as that is known.
        package let end: Int64
        package let actions: [Action]
    }

    /// How many transfers may run, and how patient they must be.
    package struct Limits {
        package let maximumDownloads: Int
        /// Those that wait for a first byte without a slot count as well.
        package let maximumPerHost: Int
        /// How many may wait for a first byte without a slot, because it was leased to what plays.
        package let maximumYielded: Int
        /// How many starts in a row may pass the transfer that has waited longest.
        package let maximumOvertakes: Int

        package init(
            maximumDownloads: Int = 6,
            maximumPerHost: Int = 6,
            maximumYielded: Int = 64,
            maximumOvertakes: Int = 32
        ) {
            precondition(maximumDownloads > 0 && maximumPerHost > 0 && maximumOvertakes > 0)
            precondition(maximumYielded >= 0)
            self.maximumDownloads = maximumDownloads
            self.maximumPerHost = maximumPerHost
            self.maximumYielded = maximumYielded
            self.maximumOvertakes = maximumOvertakes
        }
    }

    /// What a transfer takes of the limits.
    enum Occupancy: Equatable {
        /// One of the downloads, and one of its host's.
        case slot
        /// One of its host's, so that a host that hangs does not get more and more requests.
        case place
        case nothing
    }

    struct Transfer {
        enum State: Equatable {
            case queued  // → running, gone
            case running  // → stalled, leased, cancelled, gone
            /// It waits for its first byte; its slot was given to what plays.
            case yielded  // → resuming, cancelled, gone
            case stalled  // → resuming, cancelled, gone
            case resuming  // → running, cancelled, gone
            case cancelled(Occupancy)  // → gone
        }

        let group: TransferGroup
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

        var occupancy: Occupancy {
            switch state {
            case .running: .slot
            case .yielded: .place
            case .cancelled(let occupancy): occupancy
            case .queued, .stalled, .resuming: .nothing
            }
        }
        var isWaiting: Bool { state == .queued || state == .resuming }
    }

    struct Subscriber {
        let transfer: TransferID
        var priority: RequestPriority
    }

    let limits: Limits
    var transfers: [TransferID: Transfer] = [:]
    var subscribers: [SubscriberID: Subscriber] = [:]
    /// The transfers that may be joined: all but the cancelled.
    var groups: [TransferGroup: [TransferID]] = [:]
    var waiting: WaitingTransfers
    var slotsInUse = 0
    /// Those that are leased count as well.
    var placesInUseByHost: [String: Int] = [:]
    var slotsYielded = 0
    var isSuspended = false
    var isShutDown = false
    private var hasDrained = false
    private var lastTransfer: UInt64
    private var lastSubscriber: UInt64 = 0

    /// Creates a machine without transfers.
    ///
    /// - Parameters:
    ///   - limits: how many may run.
    ///   - firstTransfer: what the names of its transfers begin at; another machine's are others.
    package init(limits: Limits = Limits(), firstTransfer: UInt64 = 0) {
        self.limits = limits
        lastTransfer = firstTransfer
        waiting = WaitingTransfers(maximumOvertakes: limits.maximumOvertakes)
    }

    mutating func makeTransferID() -> TransferID {
        lastTransfer += 1
        return TransferID(number: lastTransfer)
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
            let resumes = transfers[id]?.state == .resuming
            takeSlot(of: id)
            actions.append(resumes ? .grant(id) : .start(id))
        }
        return actions
    }

    private mutating func takeSlot(of id: TransferID) {
        guard let host = transfers[id]?.host else {
            preconditionFailure("\(id) waited, but is unknown")
        }
        transfers[id]?.state = .running
        slotsInUse += 1
        let inUse = placesInUseByHost[host, default: 0] + 1
        placesInUseByHost[host] = inUse
        if inUse >= limits.maximumPerHost { waiting.setHost(host, isOpen: false) }
    }

    /// Gives back what a transfer has held until now.
    mutating func release(_ occupancy: Occupancy, ofHost host: String) {
        switch occupancy {
        case .slot: slotsInUse -= 1
        case .place: slotsYielded -= 1
        case .nothing: return
        }
        let inUse = placesInUseByHost[host, default: 0] - 1
        placesInUseByHost[host] = inUse == 0 ? nil : inUse
        waiting.setHost(host, isOpen: true)
    }

    /// `.drained`, the first time that nothing is left after a shutdown.
    mutating func drainedIfIdle() -> [Action] {
        guard isShutDown, transfers.isEmpty, !hasDrained else { return [] }
        hasDrained = true
        return [.drained]
    }
}

/// How many subscribers of each priority a transfer has.
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
