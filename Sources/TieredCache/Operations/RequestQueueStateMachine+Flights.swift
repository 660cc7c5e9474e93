extension RequestQueueStateMachine {
    /// The flight has delivered everything before `position`.
    package mutating func didAdvance(_ id: FlightID, to position: Int64) {
        guard let old = flights[id]?.position, position > old else { return }
        flights[id]?.position = position
        flights[id]?.hasBytes = true
    }

    /// The flight has begun anew with the byte at `offset`, which may lie before its coverage.
    package mutating func didRestart(_ id: FlightID, at offset: Int64) {
        guard let coverage = flights[id]?.coverage else { return }
        let lower = min(offset, coverage.lowerBound)
        flights[id]?.coverage = lower..<max(lower, coverage.upperBound)
        flights[id]?.position = offset
        flights[id]?.hasBytes = true
    }

    /// The next byte behind `offset` that a flight of a key is about to bring, whatever selects it.
    package func nextPosition(after offset: Int64, of key: CacheKey) -> Int64? {
        var next: Int64?
        for flight in flights.values where flight.group.key == key {
            if case .cancelled = flight.state { continue }
            guard flight.position > offset, flight.position < flight.coverage.upperBound else {
                continue
            }
            next = min(next ?? .max, flight.position)
        }
        return next
    }

    /// The flight's subscriber has left and stays for `amount` bytes more; of no effect where there are
    /// others.
    package mutating func linger(_ id: FlightID, for amount: Int64) {
        guard let flight = flights[id], flight.subscribers.count == 1 else { return }
        let (end, overflow) = flight.position.addingReportingOverflow(amount)
        flights[id]?.lingeringEnd = overflow ? nil : end
    }

    /// The flight will not deliver anything at or after `end`; nobody who wants that joins it.
    package mutating func shrinkCoverage(of id: FlightID, to end: Int64) {
        guard let coverage = flights[id]?.coverage, end < coverage.upperBound else { return }
        flights[id]?.coverage = coverage.lowerBound..<max(coverage.lowerBound, end)
    }

    /// The flight will deliver more than it was made for.
    package mutating func extendCoverage(of id: FlightID, to end: Int64) {
        guard let coverage = flights[id]?.coverage, end > coverage.upperBound else { return }
        flights[id]?.coverage = coverage.lowerBound..<end
    }

    /// All consumers of the flight have stopped reading: its slot goes to somebody else.
    package mutating func didStall(_ id: FlightID) -> [Action] {
        guard let flight = flights[id], flight.state == .running else { return [] }
        flights[id]?.state = .stalled
        release(flight.holding, ofHost: flight.host)
        return fillSlots()
    }

    /// A consumer reads again: the flight waits for a slot, before those that have not started.
    package mutating func didUnstall(_ id: FlightID) -> [Action] {
        guard let flight = flights[id] else { return [] }
        switch flight.state {
        case .stalled, .lent:
            flights[id]?.state = .resuming
            release(flight.holding, ofHost: flight.host)
            waiting.insert(
                id,
                kind: .resuming,
                host: flight.host,
                priority: flight.priorities.highest
            )
            return fillSlots() + makeRoom(for: id)
        case .running:
            return [.grant(id)]
        case .resuming, .cancelled:
            return []
        case .queued:
            preconditionFailure("\(id) resumed before it started")
        }
    }

    /// The flight's work has returned, for whatever reason.
    package mutating func didFinish(_ id: FlightID) -> [Action] {
        guard let flight = flights[id] else { return [] }
        precondition(flight.state != .queued, "\(id) finished before it started")
        let completions = completeSubscribers(of: id, with: .finished)
        removeFromGroup(id, flight.group)
        waiting.remove(id)
        flights[id] = nil
        release(flight.holding, ofHost: flight.host)
        return completions + fillSlots() + drainedIfIdle()
    }

    /// Nothing new starts until ``resume()``; what has started goes on, also after a stall.
    package mutating func suspend() {
        isSuspended = true
    }

    /// Takes back ``suspend()``.
    package mutating func resume() -> [Action] {
        isSuspended = false
        return fillSlots()
    }
}
