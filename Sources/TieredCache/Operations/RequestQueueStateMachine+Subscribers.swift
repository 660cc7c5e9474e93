extension RequestQueueStateMachine {
    /// Subscribes to the flight that will bring the byte at `offset`, or makes one.
    ///
    /// - Parameters:
    ///   - group: what the flight must agree with.
    ///   - offset: the first byte that the subscriber lacks.
    ///   - coverage: what a new flight would bring; holds `offset`. `..<Int64.max` where no end is
    ///     known.
    ///   - host: whose slots a new flight uses.
    ///   - priority: the subscriber's.
    ///   - maximumDistance: how many bytes a flight may be away from `offset`; nil for any number.
    /// - Returns: the subscriber and its flight; what is to be done.
    package mutating func join(
        _ group: FlightGroup,
        wanting offset: Int64,
        coverage: Range<Int64>,
        host: String,
        priority: RequestPriority,
        maximumDistance: Int64? = nil
    ) -> Join {
        let subscriber = makeSubscriberID()
        guard !isShutDown else {
            let actions = [Action.complete(subscriber, .shutDown)]
            return Join(
                subscriber: subscriber,
                flight: nil,
                isNew: false,
                end: coverage.upperBound,
                actions: actions
            )
        }
        if let id = joinableFlight(group, wanting: offset, maximumDistance: maximumDistance) {
            return join(id, subscriber, priority: priority)
        }
        let id = makeFlight(group, coverage: coverage, host: host)
        add(subscriber, priority: priority, to: id)
        waiting.insert(id, kind: .queued, host: host, priority: priority)
        let actions = fillSlots() + makeRoom(for: id)
        return Join(
            subscriber: subscriber,
            flight: id,
            isNew: true,
            end: coverage.upperBound,
            actions: actions
        )
    }

    /// Subscribes to the flight that will bring the byte at `offset`, if there is one.
    ///
    /// - Parameters:
    ///   - group: what the flight must agree with.
    ///   - offset: the first byte that the subscriber lacks.
    ///   - priority: the subscriber's.
    /// - Returns: the subscriber and its flight; nil if no flight will bring the byte.
    package mutating func joinUnderWay(
        _ group: FlightGroup,
        wanting offset: Int64,
        priority: RequestPriority
    ) -> Join? {
        guard !isShutDown,
            let id = joinableFlight(group, wanting: offset, maximumDistance: nil)
        else { return nil }
        return join(id, makeSubscriberID(), priority: priority)
    }

    private mutating func join(
        _ id: FlightID,
        _ subscriber: SubscriberID,
        priority: RequestPriority
    ) -> Join {
        add(subscriber, priority: priority, to: id)
        let actions = makeRoom(for: id)
        return Join(
            subscriber: subscriber,
            flight: id,
            isNew: false,
            end: flights[id]?.coverage.upperBound ?? .max,
            actions: actions
        )
    }

    /// A subscriber is no longer interested; the last one to leave cancels the flight.
    package mutating func leave(_ subscriber: SubscriberID) -> [Action] {
        guard
            let (flight, priority) = subscribers.removeValue(forKey: subscriber).map({
                ($0.flight, $0.priority)
            })
        else {
            return []
        }
        flights[flight]?.subscribers.remove(subscriber)
        flights[flight]?.priorities.remove(priority)
        let actions = [Action.complete(subscriber, .cancelled)]
        guard flights[flight]?.subscribers.isEmpty == true else {
            didChangePriorities(of: flight)
            return actions
        }
        return actions + abandon(flight)
    }

    /// A subscriber has become more or less urgent; ignored once it has ended.
    package mutating func setPriority(
        _ priority: RequestPriority,
        of subscriber: SubscriberID
    ) -> [Action] {
        guard let old = subscribers[subscriber] else { return [] }
        subscribers[subscriber]?.priority = priority
        flights[old.flight]?.priorities.remove(old.priority)
        flights[old.flight]?.priorities.add(priority)
        didChangePriorities(of: old.flight)
        return makeRoom(for: old.flight)
    }

    /// Ends a flight for all its subscribers.
    package mutating func cancel(_ flight: FlightID) -> [Action] {
        end(flight, with: .cancelled)
    }

    /// Ends every flight for all its subscribers.
    package mutating func cancelAll() -> [Action] {
        endAll(with: .cancelled)
    }

    /// Ends every flight and refuses joiners from now on.
    package mutating func shutDown() -> [Action] {
        guard !isShutDown else { return [] }
        isShutDown = true
        return endAll(with: .shutDown) + drainedIfIdle()
    }

    private func joinableFlight(
        _ group: FlightGroup,
        wanting offset: Int64,
        maximumDistance: Int64?
    ) -> FlightID? {
        let reaching = (groups[group] ?? []).filter { id in
            guard let flight = flights[id] else { return false }
            return flight.position <= offset && offset < flight.coverage.upperBound
                && offset - flight.position <= maximumDistance ?? .max
        }
        return reaching.max { left, right in
            (flights[left]?.position ?? 0) < (flights[right]?.position ?? 0)
        }
    }

    private mutating func makeFlight(
        _ group: FlightGroup,
        coverage: Range<Int64>,
        host: String
    ) -> FlightID {
        let id = makeFlightID()
        flights[id] = Flight(
            group: group,
            host: host,
            coverage: coverage,
            position: coverage.lowerBound
        )
        groups[group, default: []].append(id)
        return id
    }

    private mutating func add(
        _ subscriber: SubscriberID,
        priority: RequestPriority,
        to flight: FlightID
    ) {
        subscribers[subscriber] = Subscriber(flight: flight, priority: priority)
        flights[flight]?.subscribers.insert(subscriber)
        flights[flight]?.lingeringEnd = nil
        flights[flight]?.priorities.add(priority)
        didChangePriorities(of: flight)
    }

    private mutating func didChangePriorities(of id: FlightID) {
        guard let flight = flights[id], flight.isWaiting else { return }
        waiting.move(id, to: flight.priorities.highest)
    }

    private mutating func endAll(with completion: Completion) -> [Action] {
        flights.keys.sorted().flatMap { end($0, with: completion) }
    }

    private mutating func end(_ id: FlightID, with completion: Completion) -> [Action] {
        guard let flight = flights[id], !flight.subscribers.isEmpty else { return [] }
        return completeSubscribers(of: id, with: completion) + abandon(id)
    }

    mutating func completeSubscribers(
        of id: FlightID,
        with completion: Completion
    ) -> [Action] {
        guard let leaving = flights[id]?.subscribers.sorted() else { return [] }
        for subscriber in leaving { subscribers[subscriber] = nil }
        flights[id]?.subscribers = []
        flights[id]?.priorities = PriorityCounts()
        return leaving.map { .complete($0, completion) }
    }

    /// Nobody wants the flight any more: it leaves the map at once, and the queue or, if it has
    /// started, its work is cancelled and keeps its slot until it has returned.
    private mutating func abandon(_ id: FlightID) -> [Action] {
        guard let flight = flights[id] else { return [] }
        removeFromGroup(id, flight.group)
        waiting.remove(id)
        guard flight.state != .queued else {
            flights[id] = nil
            return [.drop(id)]
        }
        flights[id]?.state = .cancelled(flight.holding)
        return [.cancel(id)]
    }

    mutating func removeFromGroup(_ id: FlightID, _ group: FlightGroup) {
        groups[group]?.removeAll { $0 == id }
        if groups[group]?.isEmpty == true { groups[group] = nil }
    }
}
