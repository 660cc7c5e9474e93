import FoundationEssentials
import HTTPCaching

// Fetching at a byte that is not stored, and ahead of the consumer.
extension EntryReader {
    /// Waits for a change that concerns a missing byte.
    ///
    /// - Parameters:
    ///   - read: the read with the missing first byte.
    ///   - fetcher: fetches the byte.
    ///   - share: the transfer that will bring it.
    ///   - outcome: the outcome of that transfer before the last look at the entry, so that the
    ///     look has seen all its bytes.
    ///   - seen: the signal's version before that look.
    ///   - budget: limits the wait.
    /// - Throws: the reason why the byte will not arrive.
    func wait(
        for read: Read,
        using fetcher: GapFetcher,
        share: Share?,
        outcome: Result<Void, CacheError>?,
        seen: UInt64,
        budget: inout ReadBudget
    ) async throws(CacheError) {
        try budget.check(read.offset)
        guard let share else { return try join(read, using: fetcher, budget: &budget) }
        switch fetcher.status(of: share.transfer, for: entry, at: read.offset) {
        case .underWay:
            break
        case .claimed(let window, let storageError):
            return pass(window, share: share, storageError: storageError)
        case .forOthers:
            leave(share)
            // The transfer may have stored the byte after the last look and before it bypassed the
            // disk.
            guard entry.storedRange(at: read.offset) == nil else { return }
            return try join(read, using: fetcher, budget: &budget, isExclusive: true)
        case .otherRepresentation:
            fetcher.lingerForRestart(share.transfer)
            throw CacheError.changed(fetcher.request.target)
        case .unsuccessful(let status):
            leave(share)
            throw CacheError.status(status, for: fetcher.request.target)
        }
        if let outcome {
            leave(share)
            return try outcome.get()
        }
        // Where the origin turned out to send all in sequence, nothing was asked of it.
        if isPlanned, !share.range.contains(read.offset) {
            extend(share, for: read.offset..<read.offset + 1)
        }
        noteRead(to: read.offset, waitingFor: share.transfer.transfer)
        await budget.wait(on: fetcher.shared.signal, after: seen)
    }

    private func leave(_ share: Share) {
        state.withLock { state in state.shares.removeAll { $0.transfer === share.transfer } }
        share.transfer.cancel()
    }

    private func join(
        _ read: Read,
        using fetcher: GapFetcher,
        budget: inout ReadBudget,
        isExclusive: Bool = false
    ) throws(CacheError) {
        guard !fetcher.isOutdated(entry) else { throw CacheError.changed(fetcher.request.target) }
        budget.fruitlessTransfers += 1
        // A second exclusive transfer would bring no more than the first; a retry waits first.
        guard budget.fruitlessTransfers <= 3 else {
            throw CacheError(
                .originFailed,
                "\(fetcher.request.target.redacted) did not deliver byte \(read.offset)"
            )
        }
        // Several readers without a disk cannot share one window: the later ones fetch alone.
        let isExclusive = isExclusive || budget.fruitlessTransfers > (isPlanned ? 2 : 1)
        let (stored, now) = (Self.stored(before: read.offset, in: entry), now)
        let request = state.withLock { state in
            state.planner?.didMiss(
                read.offset,
                count: Int64(read.destination.count),
                expectedEnd: read.expectedEnd,
                storedBefore: stored,
                now: now
            )
        }
        guard let request else {
            return fetchRest(at: read.offset, using: fetcher, isExclusive: isExclusive)
        }
        fetch(request, using: fetcher, isExclusive: isExclusive)
    }

    /// Fetches all wanted bytes from an offset, for a reader without a planner.
    private func fetchRest(at offset: Int64, using fetcher: GapFetcher, isExclusive: Bool) {
        let transfer = fetcher.join(
            entry,
            at: offset,
            limit: bounds.limit,
            horizon: bounds.limit == .max
                ? .max : BlockTable.extent(around: max(offset, bounds.limit - 1)).upperBound,
            isExclusive: isExclusive
        )
        let left = state.withLock { state in
            defer { state.shares = [Share(window: 0, range: Self.all, transfer: transfer)] }
            return state.shares
        }
        for share in left { share.transfer.cancel() }
    }

    /// Fetches the bytes after a read, if the planner says so.
    func readAhead(of range: Range<Int64>, expectedEnd end: Int64?, using fetcher: GapFetcher) {
        let now = now
        let request = state.withLock { state in
            state.planner?.didRead(range, expectedEnd: end, now: now)
        }
        // Bytes that are not stored cannot be fetched ahead; a sequential body need not be.
        guard let request, storageError == nil, !isSequential, !fetcher.isOutdated(entry)
        else { return }
        let bounds = request.range.clamped(to: 0..<max(0, length ?? .max))
        guard let first = entry.storedRanges.gaps(in: bounds).ranges.first?.lowerBound,
            first < bounds.upperBound
        else { return }
        fetch(
            ReadAheadPlanner.FetchRequest(
                window: request.window,
                range: first..<request.range.upperBound,
                limit: request.limit
            ),
            using: fetcher,
            isExclusive: false
        )
    }

    private func fetch(
        _ request: ReadAheadPlanner.FetchRequest,
        using fetcher: GapFetcher,
        isExclusive: Bool
    ) {
        let first = request.range.lowerBound
        let isSequential = isSequential
        if !isSequential, !isExclusive, extend(request, using: fetcher) { return }
        // A request that may not pause has no more than is wanted now.
        let mayPause = fetcher.transfers.queue.mayKeepConnection
        let limit = isSequential ? .max : mayPause ? request.limit : request.range.upperBound
        let horizon = Self.blocksEnd(of: request.range)
        let transfer = fetcher.join(
            entry,
            at: first,
            limit: limit,
            horizon: horizon,
            stopsAtOthers: !isSequential && !isExclusive,
            isExclusive: isExclusive
        )
        let end = isSequential ? limit : max(first, min(transfer.end, horizon))
        let share = Share(window: request.window, range: first..<end, transfer: transfer)
        let abandoned = state.withLock { state in
            if !isSequential { state.planner?.didAdjust(request, to: end) }
            let windows = state.planner?.numbers ?? []
            let before = state.shares
            state.shares.removeAll { share in
                !windows.contains(share.window) || share.transfer.outcome.isSuccess
            }
            defer { state.shares.append(share) }
            return before.filter { !windows.contains($0.window) }
        }
        for share in abandoned { share.transfer.cancel() }
    }

    /// Asks the transfer of the same window for more.
    ///
    /// - Returns: whether there is one that brings the bytes.
    private func extend(
        _ request: ReadAheadPlanner.FetchRequest,
        using fetcher: GapFetcher
    ) -> Bool {
        let first = request.range.lowerBound
        let (shares, windows) = state.withLock { ($0.shares, $0.planner?.numbers ?? []) }
        let share = shares.first { share in
            share.window == request.window && share.transfer.outcome == nil
                && share.range.lowerBound <= first && first < share.transfer.end
                && extend(share, for: request.range)
        }
        guard let share else { return false }
        let end = share.transfer.end
        let left = state.withLock { state in
            state.planner?.didAdjust(request, to: min(end, Self.blocksEnd(of: request.range)))
            defer { state.shares.removeAll { !windows.contains($0.window) } }
            return state.shares.filter { !windows.contains($0.window) }
        }
        for share in left { share.transfer.cancel() }
        return true
    }

    /// Asks the transfer of a share for more.
    ///
    /// - Returns: whether it will bring the first byte.
    @discardableResult
    private func extend(_ share: Share, for range: Range<Int64>) -> Bool {
        let end = min(share.transfer.end, Self.blocksEnd(of: range))
        guard range.lowerBound < end, share.transfer.extend(for: range.lowerBound..<end) else {
            return false
        }
        state.withLock { state in
            for index in state.shares.indices
            where state.shares[index].transfer === share.transfer {
                let range = state.shares[index].range
                state.shares[index].range = range.lowerBound..<max(range.upperBound, end)
            }
        }
        return true
    }

    /// The number of bytes that are stored in a row in front of an offset.
    static func stored(before offset: Int64, in entry: DiskEntry) -> Int64 {
        offset > 0 ? entry.storedRange(at: offset - 1).map { offset - $0.lowerBound } ?? 0 : 0
    }

    private static func blocksEnd(of range: Range<Int64>) -> Int64 {
        BlockTable.extent(around: range.upperBound - 1).upperBound
    }

    // MARK: Bytes that bypass the disk

    private func pass(_ window: WindowBody, share: Share, storageError: CacheError?) {
        let range = window.start..<window.end
        let reader = WindowReader(window, range: range, subscription: share.transfer)
        state.withLock { state in
            state.shares.removeAll { $0.transfer === share.transfer }
            (state.passing, state.storageError) = (reader, storageError)
        }
    }

    /// Reads the next bytes of a gap that the disk did not take.
    ///
    /// - Returns: nil if there is no such gap; an inner nil after a change.
    func readPassing(_ read: Read, budget: ReadBudget) async throws(CacheError) -> Int?? {
        guard let passing = state.withLock({ $0.passing }) else { return nil }
        // A reader without a planner has requested the whole gap; and without ranges another
        // transfer would begin no nearer.
        let reach = isPlanned && !isSequential ? ResourceState.bridge : .max
        let taken: WindowBody.Taken
        do throws(CacheError) {
            taken = try passing.take(
                at: read.offset,
                atMost: read.destination.count,
                within: reach
            )
        } catch {
            drop(passing)
            throw error
        }
        switch taken {
        case .bytes(let bytes):
            state.withLock { $0.counts.add(fromOrigin: Int64(bytes.count)) }
            bytes.withUnsafeBytes { digests?.take($0, at: read.offset) }
            return read.destination.copy(bytes)
        case .awaited(let seen):
            try budget.check(read.offset)
            await budget.wait(on: passing.window.signal, after: seen)
        case .end, .outOfReach:
            drop(passing)
        }
        return .some(nil)
    }

    private func drop(_ passing: WindowReader) {
        // The transfer ends with its gap, which need not be the end of the body.
        let end = passing.window.bodyEnd
        state.withLock { state in
            if state.passing === passing { state.passing = nil }
            if let end { state.foundEnd = end }
        }
    }

    // MARK: The end of a sequential read

    /// Finishes after the last byte: waits for the end of the transfer, and fails if the transfer
    /// finds that the bytes are wrong.
    func finish(at position: Int64, limit: Int64) async throws(CacheError) {
        // Nothing else needs the rest of it.
        let passing = state.withLock { $0.passing.take() }
        withExtendedLifetime(passing) {}
        let budget = ReadBudget(deadline: nil, time: storage.time, control: nil)
        try await awaitEnd(budget: budget)
        await linger()
        await takeName()
        let transfer = state.withLock { state in
            defer { state.shares = [] }
            return state.shares.first?.transfer
        }
        defer { transfer?.cancel() }
        // The transfer may have found a digest mismatch.
        if case .failure(let error) = transfer?.outcome, !isRight,
            [.representationChanged, .integrityFailed].contains(error.code)
        {
            throw error
        }
        // The file may be whole only now; lookups find it once it is decided.
        try await awaitEnd(budget: budget, decidesFile: true)
        guard position > limit else { return }
        // The range lies beyond the end of a body whose length was unknown at first.
        throw CacheError(
            .rangeNotSatisfiable,
            "byte \(position) does not exist: the whole has \(limit) bytes"
        )
    }

    /// Lets the transfer of this reader reach its own end, which is at most a block away.
    ///
    /// The block is then stored and the connection can be reused. The wait for an origin that does
    /// not end its response is limited as for a reader that has left.
    private func linger() async {
        guard let fetcher, let transfer = state.withLock({ $0.shares.first?.transfer }),
            transfer.outcome == nil, transfer.isFirst
        else { return }
        let limit = storage.time.alarm(after: ResourceState.lingeringLimit) { transfer.cancel() }
        defer { limit.cancel() }
        await fetcher.shared.signal.wait(while: { transfer.outcome == nil })
    }

    /// Gives a complete successor the name of the pinned entry that it replaces, if its transfer
    /// has not done so yet: after this read a lookup finds the bytes that it delivered.
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
        storage.recorder.didFailToStore(
            fetcher.request.key,
            target: fetcher.request.target,
            error: failure
        )
        state.withLock { $0.storageError = failure }
    }
}

extension Result<Void, CacheError>? {
    fileprivate var isSuccess: Bool {
        if case .success = self { true } else { false }
    }
}
