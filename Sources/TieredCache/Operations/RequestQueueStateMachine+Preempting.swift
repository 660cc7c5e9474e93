// Who plays does not wait for those that nobody waits for, nor for origins that do not answer
// (invariant 12).
extension RequestQueueStateMachine {
    /// Gives a slot to a flight that plays: that of one that nobody waits for, or of one that waits for
    /// its first byte.
    ///
    /// The flight that nobody waits for is paused: what it has brought stays, and it goes on when it has
    /// a slot again. That happens to a flight once at most, so that it cannot happen again and again.
    ///
    /// The flight that waits for its first byte goes on waiting, and has a slot again when it has come.
    /// It still counts as one of its host's, so that a host that answers nothing gets no more requests
    /// for it, and so many at most do that at once.
    ///
    /// - Parameter id: the flight; nothing is done unless it plays and waits.
    /// - Returns: what is to be done.
    mutating func makeRoom(for id: FlightID) -> [Action] {
        guard let flight = flights[id], flight.isWaiting,
            flight.priorities.highest == .playing, flight.state == .resuming || !isSuspended
        else { return [] }
        if let loser = loser(to: flight), let loserFlight = flights[loser] {
            flights[loser]?.state = .stalled
            flights[loser]?.wasPreempted = true
            release(loserFlight.holding, ofHost: loserFlight.host)
            return [.pause(loser)] + fillSlots()
        }
        guard let lender = lender(to: flight) else { return [] }
        flights[lender]?.state = .lent
        slotsInUse -= 1
        slotsLent += 1
        return [.pause(lender)] + fillSlots()
    }

    private func isFull(_ host: String) -> Bool {
        placesInUseByHost[host, default: 0] >= limits.maximumPerHost
    }

    /// Of the flights whose slot would do, the least urgent; the youngest of those.
    private func loser(to flight: Flight) -> FlightID? {
        let isHostFull = isFull(flight.host)
        let candidates = flights.filter { _, other in
            other.state == .running && !other.wasPreempted && other.priorities.highest <= .prefetch
                && (!isHostFull || other.host == flight.host)
        }
        return candidates.min { left, right in
            (left.value.priorities.highest, right.key) < (right.value.priorities.highest, left.key)
        }?.key
    }

    /// Of the flights for other hosts that have not been answered, the one that waits longest.
    private func lender(to flight: Flight) -> FlightID? {
        guard slotsInUse >= limits.maximumDownloads, slotsLent < limits.maximumLent,
            !isFull(flight.host)
        else { return nil }
        return flights.filter { _, other in
            other.state == .running && !other.hasBytes && other.host != flight.host
        }.keys.min()
    }
}
