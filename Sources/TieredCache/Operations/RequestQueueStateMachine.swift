/// Decides which transfers have a slot: how many at once, of which host, in which order.
///
/// A value that knows no byte: performs no effect and reads no clock. Every input returns the
/// resulting actions in order; the runner calls it under a lock and acts after.
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
        /// The last transfer has ended after a shutdown. Returned once.
        case drained
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
            /// It waits for its response; a playing request has its slot.
            case yielded  // → resuming, cancelled, gone
            case stalled  // → resuming, cancelled, gone
            case resuming  // → running, cancelled, gone
            case cancelled(Occupancy)  // → gone
        }

        let host: String
        /// What it brings bytes of; the transfers of one share its slots.
        let resource: ObjectIdentifier
        /// The highest priority of a request that it is for.
        var priority: RequestPriority
        var state = State.queued
        var wasPreempted = false
        /// Whether the origin has begun to respond.
        var hasResponded = false
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
        /// Where it waits for a slot; nil if it does not.
        var line: WaitingTransfers.Line? {
            guard isWaiting else { return nil }
            return .init(host: host, lane: .init(priority, resumes: state == .resuming))
        }
        var isWaiting: Bool { state == .queued || state == .resuming }
    }

    let limits: Limits
    var transfers: [TransferID: Transfer] = [:]
    var waiting: WaitingTransfers
    var slotsInUse = 0
    /// Includes transfers that have yielded their slot.
    private(set) var placesInUseByHost: [String: Int] = [:]
    private(set) var slotsInUseByResource: [ObjectIdentifier: Int] = [:]
    var slotsYielded = 0
    var isSuspended = false
    var isShutDown = false
    private var hasDrained = false

    /// Creates a machine without transfers.
    package init(limits: Limits = Limits()) {
        self.limits = limits
        waiting = WaitingTransfers(maximumOvertakes: limits.maximumOvertakes)
    }

    /// Whether a transfer may start that has not.
    var mayStart: Bool { !isSuspended && !isShutDown }

    /// Starts transfers in order, as long as slots are free.
    mutating func fillSlots() -> [Action] {
        var actions: [Action] = []
        while slotsInUse < limits.maximumDownloads, let id = popNextWaiting() {
            let resumes = transfers[id]?.state == .resuming
            takeSlot(of: id)
            actions.append(resumes ? .grant(id) : .start(id))
        }
        return actions
    }

    private mutating func popNextWaiting() -> TransferID? {
        let (places, slots) = (placesInUseByHost, slotsInUseByResource)
        return waiting.popNext(
            includesQueued: mayStart,
            isOpen: { [limits] in places[$0] ?? 0 < limits.maximumPerHost },
            slots: { slots[$0] ?? 0 }
        )
    }

    private mutating func takeSlot(of id: TransferID) {
        guard let transfer = transfers[id] else {
            preconditionFailure("\(id) waited, but is unknown")
        }
        transfers[id]?.state = .running
        transfers[id]?.isPaused = false
        slotsInUse += 1
        slotsInUseByResource[transfer.resource, default: 0] += 1
        placesInUseByHost[transfer.host, default: 0] += 1
    }

    /// Frees what a transfer occupies.
    mutating func release(_ transfer: Transfer) {
        switch transfer.occupancy {
        case .slot: releaseSlot(of: transfer)
        case .place: slotsYielded -= 1
        case .nothing: return
        }
        placesInUseByHost.decrement(transfer.host)
    }

    mutating func releaseSlot(of transfer: Transfer) {
        slotsInUse -= 1
        slotsInUseByResource.decrement(transfer.resource)
    }

    /// `.drained`, the first time that no transfer is left after a shutdown.
    mutating func drainedIfIdle() -> [Action] {
        guard isShutDown, transfers.isEmpty, !hasDrained else { return [] }
        hasDrained = true
        return [.drained]
    }
}

extension Dictionary where Value == Int {
    /// Counts one less of a key; no entry for a zero, or the keys of a long life would add up.
    fileprivate mutating func decrement(_ key: Key) {
        guard let count = self[key] else { return }
        self[key] = count == 1 ? nil : count - 1
    }
}
