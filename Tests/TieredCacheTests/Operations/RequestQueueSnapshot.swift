@testable import TieredCache

/// What a request queue is doing at one instant.
struct RequestQueueSnapshot: Sendable {
    /// One flight.
    struct Flight: Sendable {
        /// What the flight is doing.
        enum State: String, Sendable {
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

        let id: FlightID
        let key: CacheKey
        let host: String
        let state: State
        let priority: RequestPriority
        let subscribers: Int
        let coverage: Range<Int64>
        /// Everything between the coverage's start and here has been delivered.
        let position: Int64
    }

    /// All flights, in order of arrival.
    let flights: [Flight]
    /// Slots in use: running flights, and cancelled ones that have not ended.
    let slotsInUse: Int
    let isSuspended: Bool

    /// The number of flights in `state`.
    func count(_ state: Flight.State) -> Int {
        flights.count { $0.state == state }
    }
}

extension RequestQueueStateMachine {
    /// The present state, for people.
    ///
    /// - Complexity: O(n log n) in the number of flights.
    func snapshot() -> RequestQueueSnapshot {
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

extension RequestQueue {
    func snapshot() -> RequestQueueSnapshot { state.withLock { $0.machine.snapshot() } }
}
