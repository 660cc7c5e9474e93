/// What a request queue is doing at one instant.
package struct RequestQueueSnapshot: Sendable {
    /// One flight.
    package struct Flight: Sendable {
        /// What the flight is doing.
        package enum State: String, Sendable {
            /// Waits for its first slot.
            case queued
            /// Has a slot.
            case running
            /// Waits for its first byte; its slot was given to what plays.
            case lent
            /// Has given its slot back because nobody reads.
            case stalled
            /// Was stalled and waits for a slot.
            case resuming
            /// Has lost its last subscriber and is about to end.
            case cancelled
        }

        package let id: FlightID
        package let key: CacheKey
        package let host: String
        package let state: State
        package let priority: RequestPriority
        package let subscribers: Int
        package let coverage: Range<Int64>
        /// Everything between the coverage's start and here has been delivered.
        package let position: Int64
    }

    /// All flights, in order of arrival.
    package let flights: [Flight]
    /// Slots in use: running flights, and cancelled ones that have not ended.
    package let slotsInUse: Int
    package let isSuspended: Bool

    /// The number of flights in `state`.
    package func count(_ state: Flight.State) -> Int {
        flights.count { $0.state == state }
    }
}

extension RequestQueueStateMachine {
    /// The present state, for people.
    ///
    /// - Complexity: O(n log n) in the number of flights.
    package func snapshot() -> RequestQueueSnapshot {
        let flights = flights.sorted { $0.key < $1.key }.map { id, flight in
            RequestQueueSnapshot.Flight(
                id: id,
                key: flight.group.key,
                host: flight.host,
                state: flight.state.shown,
                priority: flight.priorities.highest,
                subscribers: flight.subscribers.count,
                coverage: flight.coverage,
                position: flight.position
            )
        }
        return RequestQueueSnapshot(
            flights: flights,
            slotsInUse: slotsInUse,
            isSuspended: isSuspended
        )
    }
}

extension RequestQueueStateMachine.Flight.State {
    fileprivate var shown: RequestQueueSnapshot.Flight.State {
        switch self {
        case .queued: .queued
        case .running: .running
        case .lent: .lent
        case .stalled: .stalled
        case .resuming: .resuming
        case .cancelled: .cancelled
        }
    }
}
