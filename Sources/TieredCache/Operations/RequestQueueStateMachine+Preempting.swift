// Who plays does not wait for those that nobody waits for (invariant 12).
extension RequestQueueStateMachine {
    /// Takes the slot of a flight that nobody waits for and gives it to one that plays.
    ///
    /// The flight that loses it is paused: what it has brought stays, and it goes on when it has a slot
    /// again. That happens to a flight once at most, so that it cannot happen again and again.
    ///
    /// - Parameter id: the flight; nothing is done unless it plays and waits.
    /// - Returns: what is to be done.
    mutating func makeRoom(for id: FlightID) -> [Action] {
        guard let flight = flights[id], flight.isWaiting,
            flight.priorities.highest == .playing, flight.state == .resuming || !isSuspended,
            let loser = loser(to: flight), let host = flights[loser]?.host
        else { return [] }
        flights[loser]?.state = .stalled
        flights[loser]?.wasPreempted = true
        releaseSlot(ofHost: host)
        return [.pause(loser)] + fillSlots()
    }

    /// Of the flights whose slot would do, the least urgent; the youngest of those.
    private func loser(to flight: Flight) -> FlightID? {
        let isHostFull = slotsInUseByHost[flight.host, default: 0] >= limits.maximumPerHost
        let candidates = flights.filter { _, other in
            other.state == .running && !other.wasPreempted && other.priorities.highest <= .prefetch
                && (!isHostFull || other.host == flight.host)
        }
        return candidates.min { left, right in
            (left.value.priorities.highest, right.key) < (right.value.priorities.highest, left.key)
        }?.key
    }
}
