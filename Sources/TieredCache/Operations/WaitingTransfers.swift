import DequeModule

/// The transfers that wait for a slot, in order.
///
/// The order is: higher priority, then transfers that resume after a stall (their connection is
/// open and their consumer is back), then those of the resource with the fewest slots, so that a
/// download in many segments leaves others their share, then arrival. For their share six starts in
/// a row may go before the first of their priority and kind. At most `maximumOvertakes` starts in a
/// row may overtake the transfer that has waited longest, eight times as many if they are playing;
/// then it is next. So a stream of urgent requests cannot delay the others forever.
///
/// The same holds among the transfers of each host. Otherwise a host that is closed most of the
/// time could give every slot it gets to urgent transfers, while the oldest ones of other hosts use
/// up the exceptions.
///
/// - Complexity: O(lines), the pairs of a host and a lane in which something waits, of which few
///   are looked at closely; O(n) of a line where a transfer leaves its middle.
struct WaitingTransfers {
    /// How soon a transfer is next: that of the lowest number.
    struct Lane: Hashable {
        fileprivate let number: Int

        /// - Parameters:
        ///   - priority: its priority.
        ///   - resumes: whether it was stalled and wants its slot back.
        init(_ priority: RequestPriority, resumes: Bool) {
            number = 2 * (RequestPriority.playing.rawValue - priority.rawValue) + (resumes ? 0 : 1)
        }

        fileprivate static let all = RequestPriority.allCases.flatMap { priority in
            [true, false].map { Lane(priority, resumes: $0) }
        }

        fileprivate var isPlaying: Bool { number < 2 }
        fileprivate var resumes: Bool { number % 2 == 0 }
    }

    /// Transfers of one host and lane, which wait by arrival.
    struct Line: Hashable {
        let host: String
        let lane: Lane
    }

    private struct Waiting {
        let transfer: TransferID
        let resource: ObjectIdentifier
        let arrival: UInt64
    }

    /// A transfer that may be next.
    private struct Candidate {
        let line: Line
        let index: Int
        let arrival: UInt64
        /// How many slots its resource has; 0 where that is not asked.
        let slots: Int

        // The lowest goes first.
        var rank: (Int, Int, UInt64) { (line.lane.number, slots, arrival) }
        var rankByArrival: (Int, UInt64) { (line.lane.number, arrival) }
    }

    /// The factor by which playing requests may overtake more often.
    static let playingOvertakeFactor = 8
    /// How many starts in a row may go before the first of their lane, whose resource has more slots.
    static let maximumOvertakesInLane = 6
    /// How many of a line are compared by the slots of their resources.
    private static let comparedOfLine = 64

    private let maximumOvertakes: Int
    /// No entry for one in which nothing waits.
    private var lines: [Line: Deque<Waiting>] = [:]
    private var lastArrival: UInt64 = 0
    private var overtakes = 0
    /// Starts in a row of a lane that have gone before its first.
    private var overtakesInLane = [Int](repeating: 0, count: Lane.all.count)
    /// Starts in a row of a host's transfers that have overtaken its oldest; no entry for 0, nor where
    /// nothing of the host waits.
    private var overtakesByHost: [String: Int] = [:]

    init(maximumOvertakes: Int) {
        self.maximumOvertakes = maximumOvertakes
    }

    var count: Int { lines.values.reduce(0) { $0 + $1.count } }

    /// Adds a transfer after the others of its line.
    mutating func insert(_ transfer: TransferID, in line: Line, resource: ObjectIdentifier) {
        lastArrival += 1
        lines[line, default: []].append(
            Waiting(transfer: transfer, resource: resource, arrival: lastArrival)
        )
    }

    /// Moves a transfer to another line, at the position that its arrival gives it.
    mutating func move(_ transfer: TransferID, from old: Line, to new: Line) {
        guard old != new, let index = index(of: transfer, in: old), let waiting = lines[old]?[index]
        else { return }
        let before = lines[new]?.lastIndex { $0.arrival < waiting.arrival }
        lines[new, default: []].insert(waiting, at: before.map { $0 + 1 } ?? 0)
        // Only now: something of the host waits all the time.
        _ = remove(at: index, of: old)
    }

    /// Removes a transfer without starting it; ignored if it does not wait there.
    mutating func remove(_ transfer: TransferID, from line: Line) {
        if let index = index(of: transfer, in: line) { _ = remove(at: index, of: line) }
    }

    private func index(of transfer: TransferID, in line: Line) -> Int? {
        lines[line]?.firstIndex { $0.transfer == transfer }
    }

    private mutating func remove(at index: Int, of line: Line) -> Waiting {
        guard let waiting = lines[line]?.remove(at: index) else {
            preconditionFailure("nothing waits in the line")
        }
        if lines[line]?.isEmpty == true {
            lines[line] = nil
            if overtakesByHost[line.host] != nil, oldest(of: line.host, true) == nil {
                overtakesByHost[line.host] = nil
            }
        }
        return waiting
    }

    /// The transfer of a host that has waited longest.
    private func oldest(of host: String, _ includesQueued: Bool) -> Candidate? {
        Lane.all.lazy.filter { includesQueued || $0.resumes }
            .map { Line(host: host, lane: $0) }
            .compactMap { line in lines[line].flatMap { Self.front(of: $0, in: line) } }
            .min { $0.arrival < $1.arrival }
    }

    /// Removes the transfer that gets the next slot.
    ///
    /// - Parameters:
    ///   - includesQueued: false while no new transfer may start.
    ///   - isOpen: whether a host may have one more transfer.
    ///   - slots: how many slots the transfers of a resource have.
    /// - Returns: the transfer; nil if none waits for an open host.
    mutating func popNext(
        includesQueued: Bool,
        isOpen: (String) -> Bool,
        slots: (ObjectIdentifier) -> Int
    ) -> TransferID? {
        var first: Candidate?
        // The first of the same lane by arrival.
        var front: Candidate?
        var oldest: Candidate?
        for (line, waiting) in lines where includesQueued || line.lane.resumes {
            guard let here = Self.front(of: waiting, in: line) else { continue }
            // No host is looked up, and no resource, that changes nothing: they may be thousands.
            let isOlder = oldest.map { here.arrival < $0.arrival } ?? true
            let isFront = front.map { here.rankByArrival < $0.rankByArrival } ?? true
            let mayBeFirst = first.map { here.rank < $0.rank } ?? true
            guard isOlder || isFront || mayBeFirst, isOpen(line.host) else { continue }
            if isOlder { oldest = here }
            if isFront { front = here }
            let fairest = mayBeFirst ? Self.fairest(of: waiting, in: line, slots: slots) : nil
            if let fairest, first.map({ fairest.rank < $0.rank }) ?? true { first = fairest }
        }
        guard let first, let front, let oldest else { return nil }
        let next = next(of: (first, front, oldest), includesQueued)
        return remove(at: next.index, of: next.line).transfer
    }

    /// The one that has its turn, and counts whom it overtakes.
    private mutating func next(
        of candidates: (first: Candidate, front: Candidate, oldest: Candidate),
        _ includesQueued: Bool
    ) -> Candidate {
        let (first, front, oldest) = candidates
        let lane = front.line.lane
        let hasTurn = overtakesInLane[lane.number] >= Self.maximumOvertakesInLane
        var next = hasTurn ? front : first
        let limit = maximumOvertakes * (lane.isPlaying ? Self.playingOvertakeFactor : 1)
        if overtakes >= limit { next = oldest }
        if next.arrival == oldest.arrival {
            overtakesByHost[next.line.host] = nil
        } else if let oldestOfHost = self.oldest(of: next.line.host, includesQueued) {
            let overtakes = overtakesByHost[next.line.host] ?? 0
            if overtakes >= limit { next = oldestOfHost }
            let isOldest = next.arrival == oldestOfHost.arrival
            overtakesByHost[next.line.host] = isOldest ? nil : overtakes + 1
        }
        overtakes = next.arrival == oldest.arrival ? 0 : overtakes + 1
        if next.line.lane == lane {
            overtakesInLane[lane.number] =
                next.arrival == front.arrival ? 0 : overtakesInLane[lane.number] + 1
        }
        return next
    }

    /// The one of a line that has waited longest; its rank is the lowest that one of it can have.
    private static func front(of waiting: Deque<Waiting>, in line: Line) -> Candidate? {
        waiting.first.map {
            Candidate(line: line, index: 0, arrival: $0.arrival, slots: 0)
        }
    }

    /// The first one whose resource has the fewest slots.
    private static func fairest(
        of waiting: Deque<Waiting>,
        in line: Line,
        slots: (ObjectIdentifier) -> Int
    ) -> Candidate? {
        var fairest: Candidate?
        for (index, waiting) in waiting.prefix(comparedOfLine).enumerated() {
            let slots = slots(waiting.resource)
            guard slots < fairest?.slots ?? .max else { continue }
            fairest = Candidate(line: line, index: index, arrival: waiting.arrival, slots: slots)
            if slots == 0 { break }
        }
        return fairest
    }
}
