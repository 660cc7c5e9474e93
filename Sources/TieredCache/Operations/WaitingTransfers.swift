import DequeModule

/// The transfers that wait for a slot, in order.
///
/// The order is: higher priority, then transfers that resume after a stall (their connection is
/// open and their consumer is back), then those of the resource with the fewest slots, so that a
/// download in many segments leaves others their share, then arrival. At most `maximumOvertakes`
/// starts in a row may overtake the transfer that has waited longest, eight times as many if they
/// are playing; then it is next. So a stream of urgent requests cannot delay the others forever.
///
/// The same holds among the transfers of each host. Otherwise a host that is closed most of the
/// time could give every slot it gets to urgent transfers, while the oldest ones of other hosts use
/// up the exceptions.
///
/// - Complexity: O(lines), the pairs of a host and a lane in which something waits; O(n) of a line
///   where a transfer leaves its middle, or where all of its resources have slots.
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

        fileprivate var isPlaying: Bool { number < 2 }
        fileprivate var resumes: Bool { number % 2 == 0 }
    }

    /// Where transfers wait by arrival.
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
        /// How many its resource has.
        let slots: Int

        /// The lowest goes first.
        var rank: (lane: Int, slots: Int, arrival: UInt64) { (line.lane.number, slots, arrival) }
    }

    /// The factor by which playing requests may overtake more often.
    static let playingOvertakeFactor = 8

    private let maximumOvertakes: Int
    /// No entry for one in which nothing waits.
    private var lines: [Line: Deque<Waiting>] = [:]
    private var lastArrival: UInt64 = 0
    private var overtakes = 0
    /// Starts in a row of a host's transfers that have overtaken its oldest; no entry for 0.
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
        guard old != new, let index = index(of: transfer, in: old) else { return }
        let waiting = remove(at: index, of: old)
        let before = lines[new]?.lastIndex { $0.arrival < waiting.arrival }
        lines[new, default: []].insert(waiting, at: before.map { $0 + 1 } ?? 0)
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
        if lines[line]?.isEmpty == true { lines[line] = nil }
        return waiting
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
        var oldest: Candidate?
        for line in lines.keys
        where (includesQueued || line.lane.resumes) && isOpen(line.host) {
            first = Self.first(of: first, or: fairest(in: line, slots: slots)) { $0.rank < $1.rank }
            oldest = Self.older(of: oldest, or: self.oldest(in: line))
        }
        guard let first, let oldest else { return nil }
        let limit = maximumOvertakes * (first.line.lane.isPlaying ? Self.playingOvertakeFactor : 1)
        var next = overtakes >= limit ? oldest : first
        let host = next.line.host
        var oldestOfHost: Candidate?
        for line in lines.keys
        where line.host == host && (includesQueued || line.lane.resumes) {
            oldestOfHost = Self.older(of: oldestOfHost, or: self.oldest(in: line))
        }
        let overtakesOfHost = overtakesByHost[host] ?? 0
        if overtakesOfHost >= limit, let oldestOfHost { next = oldestOfHost }
        overtakes = next.arrival == oldest.arrival ? 0 : overtakes + 1
        let isOldestOfHost = next.arrival == oldestOfHost?.arrival
        overtakesByHost[host] = isOldestOfHost ? nil : overtakesOfHost + 1
        return remove(at: next.index, of: next.line).transfer
    }

    /// The first transfer of a line whose resource has the fewest slots.
    private func fairest(in line: Line, slots: (ObjectIdentifier) -> Int) -> Candidate? {
        var fairest: Candidate?
        for (index, waiting) in (lines[line] ?? []).enumerated() {
            let slots = slots(waiting.resource)
            guard slots < fairest?.slots ?? .max else { continue }
            fairest = Candidate(line: line, index: index, arrival: waiting.arrival, slots: slots)
            if slots == 0 { break }
        }
        return fairest
    }

    private func oldest(in line: Line) -> Candidate? {
        lines[line]?.first.map {
            Candidate(line: line, index: 0, arrival: $0.arrival, slots: 0)
        }
    }

    private static func older(of left: Candidate?, or right: Candidate?) -> Candidate? {
        first(of: left, or: right) { $0.arrival < $1.arrival }
    }

    private static func first(
        of left: Candidate?,
        or right: Candidate?,
        by goesFirst: (Candidate, Candidate) -> Bool
    ) -> Candidate? {
        guard let left, let right else { return left ?? right }
        return goesFirst(right, left) ? right : left
    }
}
