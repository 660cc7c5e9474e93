import DequeModule

/// The transfers that wait for a slot, in order.
///
/// The order is: higher priority, then transfers that resume after a stall (their connection is
/// open and their consumer is back), then arrival. At most `maximumOvertakes` starts in a row may
/// overtake the transfer that has waited longest, eight times as many if they are playing; then it
/// is next. So a stream of urgent requests cannot delay the others forever.
///
/// The same holds among the transfers of each host. Otherwise a host that is closed most of the
/// time could give every slot it gets to urgent transfers, while the oldest ones of other hosts use
/// up the exceptions.
struct WaitingTransfers {
    /// Why a transfer waits.
    enum Kind {
        /// It has not started.
        case queued
        /// It was stalled and wants its slot back.
        case resuming
    }

    private struct Waiting {
        let kind: Kind
        let host: String
        let sequence: UInt64
        var priority: RequestPriority
    }

    /// The transfers of one kind in both orders.
    private struct Lane {
        var byPriority = HostQueue()
        var byArrival = HostQueue()

        mutating func remove(_ transfer: TransferID) {
            byPriority.remove(transfer)
            byArrival.remove(transfer)
        }

        mutating func setHost(_ host: String, isOpen: Bool) {
            byPriority.setHost(host, isOpen: isOpen)
            byArrival.setHost(host, isOpen: isOpen)
        }
    }

    /// The factor by which playing requests may overtake more often.
    static let playingOvertakeFactor = 8

    private let maximumOvertakes: Int
    private var transfers: [TransferID: Waiting] = [:]
    private var queued = Lane()
    private var resuming = Lane()
    private var nextSequence: UInt64 = 0
    private var overtakes = 0
    /// Starts in a row of a host's transfers that have overtaken its oldest; no entry for 0.
    private var overtakesByHost: [String: Int] = [:]
    /// The transfers of each host by arrival; removed ones stay until they reach the front.
    private var arrivals: [String: Deque<Arrival>] = [:]

    private struct Arrival {
        let transfer: TransferID
        let sequence: UInt64
    }

    init(maximumOvertakes: Int) {
        self.maximumOvertakes = maximumOvertakes
    }

    var count: Int { transfers.count }

    /// Adds a transfer after the others of its priority.
    mutating func insert(
        _ transfer: TransferID,
        kind: Kind,
        host: String,
        priority: RequestPriority
    ) {
        nextSequence += 1
        let sequence = nextSequence
        transfers[transfer] = Waiting(
            kind: kind,
            host: host,
            sequence: sequence,
            priority: priority
        )
        arrivals[host, default: []].append(Arrival(transfer: transfer, sequence: sequence))
        // The lowest rank goes first.
        let rank = -priority.rawValue
        updateLane(kind) { lane in
            lane.byPriority.insert(
                transfer,
                host: host,
                at: .init(rank: rank, sequence: sequence)
            )
            lane.byArrival.insert(transfer, host: host, at: .init(rank: 0, sequence: sequence))
        }
    }

    /// Moves a transfer to another priority, at the position that its arrival gives it.
    mutating func move(_ transfer: TransferID, to priority: RequestPriority) {
        guard let waiting = transfers[transfer], waiting.priority != priority else { return }
        transfers[transfer]?.priority = priority
        updateLane(waiting.kind) { lane in
            lane.byPriority.remove(transfer)
            lane.byPriority.insert(
                transfer,
                host: waiting.host,
                at: .init(rank: -priority.rawValue, sequence: waiting.sequence)
            )
        }
    }

    /// Removes a transfer without starting it; ignored if it does not wait.
    mutating func remove(_ transfer: TransferID) {
        guard let waiting = transfers.removeValue(forKey: transfer) else { return }
        updateLane(waiting.kind) { $0.remove(transfer) }
        while let first = arrivals[waiting.host]?.first, !isWaiting(first) {
            arrivals[waiting.host]?.removeFirst()
        }
        if arrivals[waiting.host]?.isEmpty == true { arrivals[waiting.host] = nil }
    }

    /// Sets whether a host may have one more transfer.
    mutating func setHost(_ host: String, isOpen: Bool) {
        queued.setHost(host, isOpen: isOpen)
        resuming.setHost(host, isOpen: isOpen)
    }

    /// Removes the transfer that gets the next slot.
    ///
    /// - Parameter includesQueued: false while no new transfer may start.
    /// - Returns: the transfer; nil if none waits for an open host.
    mutating func popNext(includesQueued: Bool) -> TransferID? {
        let first = Self.earlier(
            of: resuming.byPriority.first(),
            or: includesQueued ? queued.byPriority.first() : nil,
            by: { $0.position.rank <= $1.position.rank }
        )
        guard let first else { return nil }
        let oldest = Self.earlier(
            of: resuming.byArrival.first(),
            or: includesQueued ? queued.byArrival.first() : nil,
            by: { $0.position < $1.position }
        )
        let isPlaying = first.position.rank == -RequestPriority.playing.rawValue
        let limit = maximumOvertakes * (isPlaying ? Self.playingOvertakeFactor : 1)
        var next = first
        if overtakes >= limit, let oldest { next = oldest }
        let oldestOfHost = self.oldest(of: next.host, includesQueued: includesQueued)
        let overtakesOfHost = overtakesByHost[next.host] ?? 0
        let transfer = overtakesOfHost >= limit ? oldestOfHost ?? next.transfer : next.transfer
        overtakes = transfer == oldest?.transfer ? 0 : overtakes + 1
        overtakesByHost[next.host] = transfer == oldestOfHost ? nil : overtakesOfHost + 1
        remove(transfer)
        return transfer
    }

    /// The startable transfer of a host that has waited longest.
    ///
    /// - Complexity: O(1), but O(n) while no new transfer may start.
    private func oldest(of host: String, includesQueued: Bool) -> TransferID? {
        arrivals[host]?.first { arrival in
            isWaiting(arrival)
                && (includesQueued || transfers[arrival.transfer]?.kind == .resuming)
        }?.transfer
    }

    private func isWaiting(_ arrival: Arrival) -> Bool {
        transfers[arrival.transfer]?.sequence == arrival.sequence
    }

    private static func earlier(
        of left: HostQueue.Place?,
        or right: HostQueue.Place?,
        by isEarlier: (HostQueue.Place, HostQueue.Place) -> Bool
    ) -> HostQueue.Place? {
        guard let left, let right else { return left ?? right }
        return isEarlier(left, right) ? left : right
    }

    private mutating func updateLane(_ kind: Kind, by body: (inout Lane) -> Void) {
        switch kind {
        case .queued: body(&queued)
        case .resuming: body(&resuming)
        }
    }
}
