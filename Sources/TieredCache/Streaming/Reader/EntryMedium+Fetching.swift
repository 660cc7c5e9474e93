import HTTPCaching

// What is fetched for a reader of an entry.
extension EntryMedium {
    /// Waits until something has changed about a byte that is not held.
    ///
    /// - Parameters:
    ///   - read: the read whose first byte is missing.
    ///   - filler: fetches it.
    ///   - rides: the shares in flights, and how they had ended before the byte was looked for.
    ///   - seen: the signal's version before that.
    ///   - patience: for how long.
    /// - Throws: why the byte will not come.
    func wait(
        for read: Read,
        _ filler: Filler,
        _ rides: [(Ride, Result<Void, CacheError>?)],
        seen: UInt64,
        _ patience: inout Patience
    ) async throws(CacheError) {
        try patience.check(read.offset, storage.time)
        let ride = rides.first { $0.0.range.contains(read.offset) || isSequential }
        guard let (ride, outcome) = ride else { return try join(read, filler, &patience) }
        switch filler.standing(of: ride.flight, entry, at: read.offset) {
        case .underWay:
            break
        case .claimed(let channel, let trouble):
            return spill(channel, ride, trouble)
        case .forOthers:
            drop(ride)
            // What the flight stored before it went past the disk came after the look at it.
            guard entry.held(at: read.offset) == nil else { return }
            return try join(read, filler, &patience, isAlone: true)
        case .otherRepresentation:
            filler.handOver(ride.flight)
            throw filler.changed()
        case .unsuccessful(let status):
            drop(ride)
            throw CacheError.status(status, for: filler.request.target)
        }
        if let outcome {
            drop(ride)
            return try outcome.get()
        }
        // A flight that has paused for its other readers goes on.
        if let number { filler.fill.didJoin(ride.flight.flight, reader: number) }
        state.withLock { $0.planner.didWait(for: read.offset) }
        await control.wait(after: seen, until: patience.deadline, time: storage.time)
    }

    private func drop(_ ride: Ride) {
        state.withLock { state in state.rides.removeAll { $0.flight === ride.flight } }
        ride.flight.cancel()
    }

    private func spill(_ channel: PassThroughChannel, _ ride: Ride, _ trouble: CacheError?) {
        let body = PassThroughBody(
            channel,
            range: channel.start..<channel.end,
            subscription: ride.flight
        )
        let bytes = OneWayBytes(body, at: channel.start, signal: control.signal)
        state.withLock { state in
            state.rides.removeAll { $0.flight === ride.flight }
            state.spill = bytes
            state.storageTrouble = trouble
        }
    }

    private func join(
        _ read: Read,
        _ filler: Filler,
        _ patience: inout Patience,
        isAlone: Bool = false
    ) throws(CacheError) {
        guard !filler.isOutdated(entry) else { throw filler.changed() }
        patience.fruitless += 1
        // More than one by itself brings nothing that this one did not; the next waits a while.
        guard patience.fruitless <= 3 else {
            throw CacheError(
                .originFailed,
                "\(filler.request.target.redacted) did not deliver byte \(read.offset)"
            )
        }
        let now = storage.time.monotonicTime()
        let order = state.withLock { state in
            state.planner.didMiss(
                read.offset,
                count: Int64(read.destination.count),
                certainTo: read.certainEnd,
                now: now
            )
        }
        // Several readers without a disk cannot share one channel: the later ones fetch alone.
        fetch(order, filler, isAlone: isAlone || patience.fruitless > 2)
    }

    /// Has the next bytes fetched before they are asked for.
    func readAhead(of range: Range<Int64>, certainTo end: Int64?, _ filler: Filler) {
        let now = storage.time.monotonicTime()
        let order = state.withLock { state in
            state.planner.didRead(range, certainTo: end, now: now)
        }
        // What is not stored cannot be fetched ahead; what comes in order need not be.
        guard let order, storageTrouble == nil, !isSequential, control.isOpen,
            !filler.isOutdated(entry)
        else { return }
        let bounds = order.range.clamped(to: 0..<max(0, length ?? .max))
        guard let first = entry.heldRanges.gaps(in: bounds).ranges.first?.lowerBound,
            first < bounds.upperBound
        else { return }
        fetch(
            ReadAheadPlanner.Order(window: order.window, range: first..<order.range.upperBound),
            filler,
            isAlone: false
        )
    }

    private func fetch(_ order: ReadAheadPlanner.Order, _ filler: Filler, isAlone: Bool) {
        let first = order.range.lowerBound
        let isSequential = isSequential
        var limit = isSequential ? .max : order.range.upperBound
        if !isSequential, !isAlone {
            // What lies behind the start of another transfer is brought by that.
            let key = filler.request.key
            limit = min(limit, filler.transfers.queue.nextPosition(after: first, of: key) ?? .max)
        }
        let flight = filler.join(entry, at: first, limit: limit, isAlone: isAlone)
        let blocksEnd = BlockTable.extent(around: limit - 1).upperBound
        let end = isSequential ? limit : max(first, min(flight.end, blocksEnd))
        let ride = Ride(window: order.window, range: first..<end, flight: flight)
        let abandoned = state.withLock { state in
            if !isSequential { state.planner.didOrder(order, to: end) }
            let windows = state.planner.numbers
            let before = state.rides
            state.rides.removeAll { ride in
                !windows.contains(ride.window) || ride.flight.outcome.isSuccess
            }
            defer { state.rides.append(ride) }
            return before.filter { !windows.contains($0.window) }
        }
        for ride in abandoned {
            ride.flight.cancel()
        }
        if isSequential, let number { filler.fill.didJoin(flight.flight, reader: number) }
    }
}

extension Result<Void, CacheError>? {
    fileprivate var isSuccess: Bool {
        if case .success = self { true } else { false }
    }
}
