/// The flights that wait for a slot, and who is next.
///
/// The order is: higher priority, then flights that resume after a stall (their connection is open
/// and their consumer is back), then arrival. So that a stream of urgent requests cannot keep the
/// others out for ever, at most `maximumOvertakes` starts in a row may pass the flight that has
/// waited longest; then it is its turn, unless something is playing.
struct WaitingFlights {
    /// Why a flight waits.
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

    /// One kind of flights in both orders.
    private struct Lane {
        var byPriority = HostLine()
        var byArrival = HostLine()

        mutating func remove(_ flight: FlightID) {
            byPriority.remove(flight)
            byArrival.remove(flight)
        }

        mutating func setHost(_ host: String, isOpen: Bool) {
            byPriority.setHost(host, isOpen: isOpen)
            byArrival.setHost(host, isOpen: isOpen)
        }
    }

    private let maximumOvertakes: Int
    private var flights: [FlightID: Waiting] = [:]
    private var queued = Lane()
    private var resuming = Lane()
    private var nextSequence: UInt64 = 0
    private var overtakes = 0

    init(maximumOvertakes: Int) {
        self.maximumOvertakes = maximumOvertakes
    }

    var count: Int { flights.count }

    /// Adds a flight at the end of its priority.
    mutating func insert(
        _ flight: FlightID,
        kind: Kind,
        host: String,
        priority: RequestPriority
    ) {
        nextSequence += 1
        let sequence = nextSequence
        flights[flight] = Waiting(
            kind: kind,
            host: host,
            sequence: sequence,
            priority: priority
        )
        let rank = -priority.rawValue
        updateLane(kind) { lane in
            lane.byPriority.insert(
                flight,
                host: host,
                at: .init(rank: rank, sequence: sequence)
            )
            lane.byArrival.insert(flight, host: host, at: .init(rank: 0, sequence: sequence))
        }
    }

    /// Moves a flight to the place among `priority` that its arrival gives it.
    mutating func move(_ flight: FlightID, to priority: RequestPriority) {
        guard let waiting = flights[flight], waiting.priority != priority else { return }
        flights[flight]?.priority = priority
        updateLane(waiting.kind) { lane in
            lane.byPriority.remove(flight)
            lane.byPriority.insert(
                flight,
                host: waiting.host,
                at: .init(rank: -priority.rawValue, sequence: waiting.sequence)
            )
        }
    }

    /// Takes a flight out without starting it; ignored if it does not wait.
    mutating func remove(_ flight: FlightID) {
        guard let waiting = flights.removeValue(forKey: flight) else { return }
        updateLane(waiting.kind) { $0.remove(flight) }
    }

    /// Says whether a host may have one more flight.
    mutating func setHost(_ host: String, isOpen: Bool) {
        queued.setHost(host, isOpen: isOpen)
        resuming.setHost(host, isOpen: isOpen)
    }

    /// Takes out the flight that is to have the next slot.
    ///
    /// - Parameter includesQueued: false while nothing new may start.
    /// - Returns: the flight, or nil if none waits at an open host.
    mutating func popNext(includesQueued: Bool) -> FlightID? {
        let first = Self.earlier(
            resuming.byPriority.first(),
            includesQueued ? queued.byPriority.first() : nil,
            by: { $0.position.rank <= $1.position.rank }
        )
        guard let first else { return nil }
        let oldest = Self.earlier(
            resuming.byArrival.first(),
            includesQueued ? queued.byArrival.first() : nil,
            by: { $0.position < $1.position }
        )
        let isPlaying = first.position.rank == -RequestPriority.playing.rawValue
        let isTurnOfOldest = overtakes >= maximumOvertakes && !isPlaying
        let next = isTurnOfOldest ? oldest?.flight ?? first.flight : first.flight
        overtakes = next == oldest?.flight ? 0 : overtakes + 1
        remove(next)
        return next
    }

    private static func earlier(
        _ left: HostLine.Place?,
        _ right: HostLine.Place?,
        by isEarlier: (HostLine.Place, HostLine.Place) -> Bool
    ) -> HostLine.Place? {
        guard let left, let right else { return left ?? right }
        return isEarlier(left, right) ? left : right
    }

    private mutating func updateLane(_ kind: Kind, _ body: (inout Lane) -> Void) {
        switch kind {
        case .queued: body(&queued)
        case .resuming: body(&resuming)
        }
    }
}
