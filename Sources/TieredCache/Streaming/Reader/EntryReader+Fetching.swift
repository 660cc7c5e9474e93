import HTTPCaching

// What a reader does at a byte that is not stored, and before its consumer comes to one.
extension EntryReader {
    /// Waits until something has changed about a byte that is not stored.
    ///
    /// - Parameters:
    ///   - read: the read whose first byte is missing.
    ///   - fetcher: fetches it.
    ///   - share: the transfer that is to bring it.
    ///   - outcome: how that had ended before the byte was looked for, so that what it brought was
    ///     seen.
    ///   - seen: the signal's version before that.
    ///   - budget: for how long.
    /// - Throws: why the byte will not come.
    func wait(
        for read: Read,
        _ fetcher: GapFetcher,
        _ share: Share?,
        _ outcome: Result<Void, CacheError>?,
        seen: UInt64,
        _ budget: inout ReadBudget
    ) async throws(CacheError) {
        try budget.check(read.offset)
        guard let share else { return try join(read, fetcher, &budget) }
        switch fetcher.status(of: share.transfer, entry, at: read.offset) {
        case .underWay:
            break
        case .claimed(let channel, let storageError):
            return pass(channel, share, storageError)
        case .forOthers:
            leave(share)
            // What the transfer stored before it went past the disk came after the look at it.
            guard entry.storedRange(at: read.offset) == nil else { return }
            return try join(read, fetcher, &budget, isAlone: true)
        case .otherRepresentation:
            fetcher.handOver(share.transfer)
            throw CacheError.changed(fetcher.request.target)
        case .unsuccessful(let status):
            leave(share)
            throw CacheError.status(status, for: fetcher.request.target)
        }
        if let outcome {
            leave(share)
            return try outcome.get()
        }
        if isPlanned {
            // A transfer that has paused for its other readers goes on.
            if let number { fetcher.shared.didJoin(share.transfer.transfer, reader: number) }
            state.withLock { $0.planner?.didWait(for: read.offset) }
        }
        await budget.wait(on: fetcher.shared.signal, after: seen)
    }

    private func leave(_ share: Share) {
        state.withLock { state in state.shares.removeAll { $0.transfer === share.transfer } }
        share.transfer.cancel()
    }

    private func join(
        _ read: Read,
        _ fetcher: GapFetcher,
        _ budget: inout ReadBudget,
        isAlone: Bool = false
    ) throws(CacheError) {
        guard !fetcher.isOutdated(entry) else { throw CacheError.changed(fetcher.request.target) }
        budget.fruitless += 1
        // More than one by itself brings nothing that this one did not; the next waits a while.
        guard budget.fruitless <= 3 else {
            throw CacheError(
                .originFailed,
                "\(fetcher.request.target.redacted) did not deliver byte \(read.offset)"
            )
        }
        // Several readers without a disk cannot share one channel: the later ones fetch alone.
        let isAlone = isAlone || budget.fruitless > (isPlanned ? 2 : 1)
        let now = now
        let order = state.withLock { state in
            state.planner?.didMiss(
                read.offset,
                count: Int64(read.destination.count),
                expectedEnd: read.expectedEnd,
                now: now
            )
        }
        guard let order else { return fetchRest(at: read.offset, fetcher, isAlone: isAlone) }
        fetch(order, fetcher, isAlone: isAlone)
    }

    /// Has all brought that a reader without a plan wants from a byte on.
    private func fetchRest(at offset: Int64, _ fetcher: GapFetcher, isAlone: Bool) {
        let transfer = fetcher.join(entry, at: offset, limit: bounds.limit, isAlone: isAlone)
        let left = state.withLock { state in
            defer { state.shares = [Share(window: 0, range: Self.all, transfer: transfer)] }
            return state.shares
        }
        if let number { fetcher.shared.didJoin(transfer.transfer, reader: number) }
        for share in left { share.transfer.cancel() }
    }

    /// Has the next bytes fetched before they are asked for.
    func readAhead(of range: Range<Int64>, expectedEnd end: Int64?, _ fetcher: GapFetcher) {
        let now = now
        let order = state.withLock { state in
            state.planner?.didRead(range, expectedEnd: end, now: now)
        }
        // What is not stored cannot be fetched ahead; what comes in order need not be.
        guard let order, storageError == nil, !isSequential, !fetcher.isOutdated(entry)
        else { return }
        let bounds = order.range.clamped(to: 0..<max(0, length ?? .max))
        guard let first = entry.storedRanges.gaps(in: bounds).ranges.first?.lowerBound,
            first < bounds.upperBound
        else { return }
        fetch(
            ReadAheadPlanner.Order(window: order.window, range: first..<order.range.upperBound),
            fetcher,
            isAlone: false
        )
    }

    private func fetch(_ order: ReadAheadPlanner.Order, _ fetcher: GapFetcher, isAlone: Bool) {
        let first = order.range.lowerBound
        let isSequential = isSequential
        var limit = isSequential ? .max : order.range.upperBound
        if !isSequential, !isAlone {
            // What lies behind the start of another transfer is brought by that.
            let key = fetcher.request.key
            limit = min(limit, fetcher.transfers.queue.nextPosition(after: first, of: key) ?? .max)
        }
        let transfer = fetcher.join(entry, at: first, limit: limit, isAlone: isAlone)
        let blocksEnd = BlockTable.extent(around: limit - 1).upperBound
        let end = isSequential ? limit : max(first, min(transfer.end, blocksEnd))
        let share = Share(window: order.window, range: first..<end, transfer: transfer)
        let abandoned = state.withLock { state in
            if !isSequential { state.planner?.didOrder(order, to: end) }
            let windows = state.planner?.numbers ?? []
            let before = state.shares
            state.shares.removeAll { share in
                !windows.contains(share.window) || share.transfer.outcome.isSuccess
            }
            defer { state.shares.append(share) }
            return before.filter { !windows.contains($0.window) }
        }
        for share in abandoned { share.transfer.cancel() }
        if isSequential, let number { fetcher.shared.didJoin(transfer.transfer, reader: number) }
    }

    // MARK: Bytes past the disk

    private func pass(_ channel: PassThroughChannel, _ share: Share, _ storageError: CacheError?) {
        let range = channel.start..<channel.end
        let reader = PassThroughReader(channel, range: range, subscription: share.transfer)
        state.withLock { state in
            state.shares.removeAll { $0.transfer === share.transfer }
            (state.passing, state.storageError) = (reader, storageError)
        }
    }

    /// The next bytes of a gap that the disk did not take.
    ///
    /// - Returns: nil where there is none; an inner nil after something has changed.
    func passed(_ read: Read, _ budget: ReadBudget) async throws(CacheError) -> Int?? {
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
            try budget.check(read.offset)
            await budget.wait(on: passing.signal, after: seen)
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

    /// All bytes are out: sees the transfer to its end, and fails where that says they are not the
    /// right ones.
    func end(_ position: Int64, _ limit: Int64) async throws(CacheError) {
        try await state.withLock { $0.passing.take() }?.finish()
        await linger()
        await takeName()
        let transfer = state.withLock { state in
            defer { state.shares = [] }
            return state.shares.first?.transfer
        }
        // The transfer may have found that they are not those that were promised.
        if case .failure(let error) = transfer?.outcome,
            [.representationChanged, .integrityFailed].contains(error.code)
        {
            throw error
        }
        transfer?.cancel()
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
        guard let fetcher, let transfer = state.withLock({ $0.shares.first?.transfer }),
            transfer.outcome == nil, transfer.isFirst || fetcher.awaitsDecision
        else { return }
        let signal = fetcher.shared.signal
        // Comparing digests takes as long as the body is long.
        let awaitsDecision = fetcher.awaitsDecision && entry.isComplete
        let budget =
            awaitsDecision ? nil : storage.time.alarm(after: Lingering.limit) { transfer.cancel() }
        defer { budget?.cancel() }
        while !Task.isCancelled, transfer.outcome == nil {
            let seen = signal.version
            guard transfer.outcome == nil else { return }
            await signal.wait(after: seen)
        }
    }

    /// Gives a body that follows a pinned one its name, where the transfer that stored its last
    /// block has not come to that: from this reader's end on, a lookup finds what it has read.
    private func takeName() async {
        guard let fetcher, followsPinned, entry.isComplete else { return }
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
        storage.recorder.didFailToStore(fetcher.request.key, fetcher.request.target, failure)
        state.withLock { $0.storageError = failure }
    }
}

extension Result<Void, CacheError>? {
    fileprivate var isSuccess: Bool {
        if case .success = self { true } else { false }
    }
}
