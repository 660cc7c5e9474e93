/// Decides which downloads run and which requests share them.
///
/// Performs no effect and reads no clock. Every input returns the resulting actions in order; the
/// runner calls it under a lock and acts after. The decisions "the last subscriber has left,
/// cancel" and "no request may join any more" are one step, so a late request gets a transfer of
/// its own.
package struct RequestQueueStateMachine {
    /// An action of the runner.
    package enum Action: Equatable {
        /// Run the transfer's work.
        case start(TransferID)
        /// Grant the stalled transfer a slot again.
        case grant(TransferID)
        /// Take the slot of the running transfer: it continues when it has one again.
        case pause(TransferID)
        /// Cancel the running work; the transfer ends when the work has returned.
        case cancel(TransferID)
        /// Discard work that never started.
        case drop(TransferID)
        /// Complete a subscription. Each subscriber gets this exactly once.
        case complete(SubscriberID, Completion)
        /// The last transfer has ended after a shutdown. Returned once.
        case drained
    }

    /// How a subscription ended.
    package enum Completion: Equatable {
        /// The transfer's work returned; its result is that of the subscription.
        case finished
        /// The subscriber left, or the transfer was cancelled for all.
        case cancelled
        /// The subscriber left because it waited for a slot.
        case busy
        /// The queue was shut down.
        case shutDown
    }

    /// The number of bytes that cost less than a request of their own.
    package static let bridge: Int64 = 256 << 10

    /// The result of joining.
    package struct Join {
        package let subscriber: SubscriberID
        /// The transfer joined, or nil if the queue is shut down.
        package let transfer: TransferID?
        /// Whether the transfer was made for this subscriber.
        package let isNew: Bool
        /// The end of the transfer's coverage.
        package let end: Int64
        package let actions: [Action]
    }

    /// The maximum numbers of transfers.
    package struct Limits {
        package let maximumDownloads: Int
        /// Includes transfers that wait for a first byte without a slot.
        package let maximumPerHost: Int
        /// How many may wait for a first byte without a slot, having yielded it to a playing
        /// request.
        package let maximumYielded: Int
        /// How many starts in a row may overtake the transfer that has waited longest.
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

    /// What a transfer counts against.
    enum Occupancy: Equatable {
        /// The total and its host's limit.
        case slot
        /// Its host's limit only, so that a silent host does not get more and more requests.
        case place
        case nothing
    }

    struct Transfer {
        enum State: Equatable {
            case queued  // → running, gone
            case running  // → stalled, yielded, cancelled, gone
            /// It waits for its first byte; a playing request has its slot.
            case yielded  // → resuming, cancelled, gone
            case stalled  // → resuming, cancelled, gone
            case resuming  // → running, cancelled, gone
            case cancelled(Occupancy)  // → gone
        }

        var group: TransferGroup
        let host: String
        var coverage: Range<Int64>
        var position: Int64
        var state = State.queued
        var subscribers: Set<SubscriberID> = []
        var priorities = PriorityCounts()
        var wasPreempted = false
        /// Whether the origin has begun to respond.
        var hasBytes = false
        /// The end of the transfer unless a request joins: its last subscriber has stopped reading.
        var lingeringEnd: Int64?
        /// The end of the bytes that a subscriber wants for now.
        var horizon: Int64 = 0
        /// Whether it keeps its connection, without a slot, because no reader wants more for now.
        var isPaused = false

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
        /// The end of the bytes that it wants for now; `.max` if it takes what comes.
        var horizon: Int64
    }

    let limits: Limits
    var transfers: [TransferID: Transfer] = [:]
    var subscribers: [SubscriberID: Subscriber] = [:]
    /// The transfers that may be joined: all except cancelled ones.
    var groups: [TransferGroup: [TransferID]] = [:]
    var waiting: WaitingTransfers
    var slotsInUse = 0
    /// Includes transfers that have yielded their slot.
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
    ///   - limits: the maximum numbers of transfers.
    ///   - firstTransfer: the base of its transfer numbers; machines of one cache use distinct
    ///     ones.
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

    /// Starts transfers in order, as long as slots are free.
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
        transfers[id]?.isPaused = false
        slotsInUse += 1
        let inUse = placesInUseByHost[host, default: 0] + 1
        placesInUseByHost[host] = inUse
        if inUse >= limits.maximumPerHost { waiting.setHost(host, isOpen: false) }
    }

    /// Frees what a transfer has occupied.
    mutating func release(_ occupancy: Occupancy, ofHost host: String) {
        switch occupancy {
        case .slot: slotsInUse -= 1
        case .place: slotsYielded -= 1
        case .nothing: return
        }
        let inUse = placesInUseByHost[host, default: 0] - 1
        // No entry for a zero, or the hosts of a long life would add up.
        placesInUseByHost[host] = inUse == 0 ? nil : inUse
        waiting.setHost(host, isOpen: true)
    }

    /// `.drained`, the first time that no transfer is left after a shutdown.
    mutating func drainedIfIdle() -> [Action] {
        guard isShutDown, transfers.isEmpty, !hasDrained else { return [] }
        hasDrained = true
        return [.drained]
    }
}

/// The number of subscribers of a transfer by priority.
struct PriorityCounts {
    private var counts = [Int](repeating: 0, count: RequestPriority.allCases.count)

    /// The highest priority of a subscriber; background without subscribers.
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
