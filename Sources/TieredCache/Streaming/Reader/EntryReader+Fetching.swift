import HTTPCaching

// What a reader does at a byte that is not stored, and before its consumer comes to one.
extension EntryReader {
    /// Waits until something has changed about a byte that is not stored.
    ///
    /// - Parameters:
    ///   - read: the read whose first byte is missing.
    ///   - filler: fetches it.
    ///   - share: the transfer that is to bring it.
    ///   - outcome: how that had ended before the byte was looked for, so that what it brought was seen.
    ///   - seen: the signal's version before that.
    ///   - patience: for how long.
    /// - Throws: why the byte will not come.
    func wait(
        for read: Read,
        _ filler: Filler,
        _ share: Share?,
        _ outcome: Result<Void, CacheError>?,
        seen: UInt64,
        _ patience: inout Patience
    ) async throws(CacheError) {
        try patience.check(read.offset)
        guard let share else { return try join(read, filler, &patience) }
        switch filler.standing(of: share.flight, entry, at: read.offset) {
        case .underWay:
            break
        case .claimed(let channel, let trouble):
            return pass(channel, share, trouble)
        case .forOthers:
            leave(share)
            // What the transfer stored before it went past the disk came after the look at it.
            guard entry.held(at: read.offset) == nil else { return }
            return try join(read, filler, &patience, isAlone: true)
        case .otherRepresentation:
            filler.handOver(share.flight)
            throw CacheError.changed(filler.request.target)
        case .unsuccessful(let status):
            leave(share)
            throw CacheError.status(status, for: filler.request.target)
        }
        if let outcome {
            leave(share)
            return try outcome.get()
        }
        if isPlanned {
            // A transfer that has paused for its other readers goes on.
            if let number { filler.fill.didJoin(share.flight.flight, reader: number) }
            state.withLock { $0.planner?.didWait(for: read.offset) }
        }
        await patience.wait(on: filler.fill.signal, after: seen)
    }

    private func leave(_ share: Share) {
        state.withLock { state in state.shares.removeAll { $0.flight === share.flight } }
        share.flight.cancel()
    }

    private func join(
        _ read: Read,
        _ filler: Filler,
        _ patience: inout Patience,
        isAlone: Bool = false
    ) throws(CacheError) {
        guard !filler.isOutdated(entry) else { throw CacheError.changed(filler.request.target) }
        patience.fruitless += 1
        // More than one by itself brings nothing that this one did not; the next waits a while.
        guard patience.fruitless <= 3 else {
            throw CacheError(
                .originFailed,
                "\(filler.request.target.redacted) did not deliver byte \(read.offset)"
            )
        }
        // Several readers without a disk cannot share one channel: the later ones fetch alone.
        let isAlone = isAlone || patience.fruitless > (isPlanned ? 2 : 1)
        let now = now
        let order = state.withLock { state in
            state.planner?.didMiss(
                read.offset,
                count: Int64(read.destination.count),
                certainTo: read.certainEnd,
                now: now
            )
        }
        guard let order else { return fetchRest(at: read.offset, filler, isAlone: isAlone) }
        fetch(order, filler, isAlone: isAlone)
    }

    /// Has all brought that a reader without a plan wants from a byte on.
    private func fetchRest(at offset: Int64, _ filler: Filler, isAlone: Bool) {
        let flight = filler.join(entry, at: offset, limit: bounds.limit, isAlone: isAlone)
        let left = state.withLock { state in
            defer { state.shares = [Share(window: 0, range: Self.all, flight: flight)] }
            return state.shares
        }
        if let number { filler.fill.didJoin(flight.flight, reader: number) }
        for share in left { share.flight.cancel() }
    }

    /// Has the next bytes fetched before they are asked for.
    func readAhead(of range: Range<Int64>, certainTo end: Int64?, _ filler: Filler) {
        let now = now
        let order = state.withLock { state in
            state.planner?.didRead(range, certainTo: end, now: now)
        }
        // What is not stored cannot be fetched ahead; what comes in order need not be.
        guard let order, storageTrouble == nil, !isSequential, !filler.isOutdated(entry)
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
        let share = Share(window: order.window, range: first..<end, flight: flight)
        let abandoned = state.withLock { state in
            if !isSequential { state.planner?.didOrder(order, to: end) }
            let windows = state.planner?.numbers ?? []
            let before = state.shares
            state.shares.removeAll { share in
                !windows.contains(share.window) || share.flight.outcome.isSuccess
            }
            defer { state.shares.append(share) }
            return before.filter { !windows.contains($0.window) }
        }
        for share in abandoned { share.flight.cancel() }
        if isSequential, let number { filler.fill.didJoin(flight.flight, reader: number) }
    }

    // MARK: Bytes past the disk

    private func pass(_ channel: PassThroughChannel, _ share: Share, _ trouble: CacheError?) {
        let range = channel.start..<channel.end
        let reader = PassThroughReader(channel, range: range, subscription: share.flight)
        state.withLock { state in
            state.shares.removeAll { $0.flight === share.flight }
            (state.passing, state.storageTrouble) = (reader, trouble)
        }
    }

    /// The next bytes of a gap that the disk did not take.
    ///
    /// - Returns: nil where there is none; an inner nil after something has changed.
    func passed(_ read: Read, _ patience: Patience) async throws(CacheError) -> Int?? {
        guard let passing = state.withLock({ $0.passing }) else { return nil }
        // All of it was asked for by a reader without a plan.
        let reach = isPlanned ? ReadAheadPlanner.Options().bridge : .max
        let taken: PassThroughReader.Taken
        do throws(CacheError) {
            taken = try passing.take(read, within: reach)
        } catch {
            drop(passing)
            throw error
        }
        switch taken {
        case .bytes(let count):
            state.withLock { $0.counts.add(fromOrigin: Int64(count)) }
            return count
        case .awaited(let seen):
            try patience.check(read.offset)
            await patience.wait(on: passing.signal, after: seen)
        case .end, .outOfReach:
            drop(passing)
        }
        return .some(nil)
    }

    private func drop(_ passing: PassThroughReader) {
        // The transfer ends where its gap did, which need not be the end of the body.
        let end = passing.bodyEnd
        state.withLock { state in
            if state.passing === passing { state.passing = nil }
            if let end { state.foundEnd = end }
        }
    }

    // MARK: The end of what is read through

    /// All bytes are out: sees the transfer to its end, and fails where that says they are not the right ones.
    func end(_ position: Int64, _ limit: Int64) async throws(CacheError) {
        try await state.withLock { $0.passing.take() }?.finish()
        await linger()
        await takeName()
        let flight = state.withLock { state in
            defer { state.shares = [] }
            return state.shares.first?.flight
        }
        // The transfer may have found that they are not those that were promised.
        if case .failure(let error) = flight?.outcome,
            [.representationChanged, .integrityFailed].contains(error.code)
        {
            throw error
        }
        flight?.cancel()
        guard position > limit else { return }
        // Of a body whose length was not known at first.
        throw CacheError(
            .rangeNotSatisfiable,
            "byte \(position) does not exist: the whole has \(limit) bytes"
        )
    }

    /// Lets the transfer of this reader come to its own end, which is at most a block away.
    ///
    /// So that the block is stored and the connection can be used again. An origin that does not
    /// come to an end is waited for as long as for a reader that has left.
    private func linger() async {
        guard let filler, let flight = state.withLock({ $0.shares.first?.flight }),
            flight.outcome == nil, flight.isFirst || filler.awaitsVerdict
        else { return }
        let signal = filler.fill.signal
        // Comparing digests takes as long as the body is long.
        let awaitsVerdict = filler.awaitsVerdict && entry.isComplete
        let patience =
            awaitsVerdict ? nil : storage.time.alarm(after: Lingering.patience) { flight.cancel() }
        defer { patience?.cancel() }
        while !Task.isCancelled, flight.outcome == nil {
            let seen = signal.version
            guard flight.outcome == nil else { return }
            await signal.wait(after: seen)
        }
    }

    /// Gives a body that follows a pinned one its name, where the transfer that stored its last block has
    /// not come to that: from this reader's end on, a lookup finds what it has read.
    private func takeName() async {
        guard let filler, followsPinned, entry.isComplete else { return }
        let entry = entry
        let failure = await storage.writers.run { () -> CacheError? in
            do throws(CacheError) {
                _ = try entry.takeNameUnlessJudged()
                return nil
            } catch {
                return error
            }
        }
        storage.memory.remove(entry.key)
        guard let failure else { return }
        storage.recorder.didFailToStore(filler.request.key, filler.request.target, failure)
        state.withLock { $0.storageTrouble = failure }
    }
}

extension Result<Void, CacheError>? {
    fileprivate var isSuccess: Bool {
        if case .success = self { true } else { false }
    }
}
