import HTTPCaching
import HTTPTypes

// What a head makes of the sink: a new entry, the one that is stored, or a channel past the disk.
extension StoringSink {
    func beginGeneration(
        _ head: DownloadHead,
        _ start: GenerationStart
    ) async throws(CacheError) {
        if start.contradictsStored, let stored = generation ?? operation.base {
            operation.shared.didContradict(stored.entry)
        }
        var stored = operation.storedResponse(head, start)
        if start.areRangesUntrusted { stored.flags.insert(.withoutRanges) }
        // A request that joins the transfer for the new body waits for its first byte, not for that
        // of the range.
        context.restart(at: start.offset)
        if operation.plan.wantsWhole(after: start, head.response) {
            // A reader takes all, in order, from an origin that does not know ranges; and where
            // what was asked for has changed, its range means nothing any more.
            state.withLock { $0.end = .max }
            context.extendCoverage(to: .max)
            if operation.plan.generation == nil,
                head.response.headerFields[.acceptRanges]?.lowercased() != "bytes"
            {
                stored.flags.insert(.withoutRanges)
            }
        }
        if operation.plan.hasIgnoredRanges(start, head.response) {
            // The entry may be another transfer's, which holds some of it.
            state.withLock { $0.repeatsStored = true }
        }
        if case .passing(let channel, let known) = state.withLock({ $0.mode }), !channel.withdraw()
        {
            // Its reader knows a head already, so only the same body from its start can follow.
            guard stored.isSameShape(as: known),
                channel.restart(start: start.offset, completeLength: start.completeLength)
            else { throw CacheError.changed(operation.request.target) }
            state.withLock { $0.passed = start.offset }
            dropPart()
            beginDigests(of: stored, start)
            return
        }
        if operation.stored != nil {
            recorder.didRevalidate(operation.request.key, isUnchanged: false)
        }
        tell()
        try await operation.shared.takeTurnToMakeEntry()
        defer { operation.shared.endTurnToMakeEntry() }
        setPromise(nil)
        switch operation.makeEntry(stored, head, start, end: state.withLock { $0.end }) {
        case .success(let place):
            setPromise(place.promise)
            let generation = SharedTransfers.Generation(
                head: stored,
                entry: place.entry,
                received: operation.receivedResponse(head, start, stored)
            )
            if case .storing(_, let old?) = state.withLock({ $0.mode }) { end(old) }
            enter(.storing(generation, nil))
            publish(.storing(generation))
        case .failure(let reason):
            beginDigests(of: stored, start)
            let kept = reason.isOfDisk ? nil : operation.makePart(head, start)
            endPart()
            state.withLock { $0.part = kept }
            beginPassing(
                operation.receivedResponse(head, start, stored) ?? stored,
                from: start.offset,
                length: start.completeLength,
                isVerbatim: start.isVerbatim,
                reason
            )
        }
    }

    /// What passes is compared with what was promised, where it is the whole of something and not
    /// for another client, which can do that itself.
    private func beginDigests(of head: StoredResponse, _ start: GenerationStart) {
        let isWhole = start.offset == 0 && !start.isVerbatim && operation.request.relay == nil
        passingDigests = isWhole ? PassingDigests(operation.expectedDigests(of: head)) : nil
    }

    private func beginPassing(
        _ head: StoredResponse,
        from offset: Int64,
        length: Int64?,
        isVerbatim: Bool,
        _ reason: NotStored
    ) {
        // No other request can use what is not stored, so none is to join any more.
        context.shrinkCoverage(to: 0)
        state.withLock { $0.passed = offset }
        let channel = PassThroughChannel(
            start: offset,
            end: isVerbatim ? .max : state.withLock { $0.end },
            completeLength: length,
            awaitsDecision: passingDigests != nil,
            isKept: state.withLock { $0.part != nil }
        )
        let before = enter(.passing(channel, head))
        if case .storing(_, let shared?) = before { end(shared) }
        publish(.passing(head, channel, reason))
    }

    func continueGeneration(
        _ head: DownloadHead,
        from offset: Int64,
        length: Int64?
    ) throws(CacheError) {
        let repeats = head.response.status == .ok
        if repeats {
            takeWhole()
            // At once: a job may end this transfer before it is over.
            origins.didIgnoreRange(operation.request)
        }
        guard case .idle = state.withLock({ $0.mode }) else { return }
        guard let base = operation.base else {
            throw CacheError(.originFailed, "a part of a representation that is not stored")
        }
        // The answer says whether its bytes are stored.
        _ = base.entry.checkWritable()
        var stored = operation.freshened(base, by: head, completeLength: length)
        if repeats { stored = operation.noteWithoutRanges(stored, head.response, base.entry) }
        let generation = SharedTransfers.Generation(head: stored, entry: base.entry)
        enter(.storing(generation, nil))
        publish(.storing(generation))
    }

    /// The origin sends all of what is stored once more, because it does not know ranges.
    private func takeWhole() {
        state.withLock { $0.repeatsStored = true }
        guard operation.plan.policy.takesWholeAnswers else { return }
        state.withLock { $0.end = .max }
        context.extendCoverage(to: .max)
    }

    private func publish(_ answer: SharedTransfers.Outcome) {
        let group = operation.isForOneReader ? nil : operation.group
        operation.shared.didReceiveHead(answer, report: context.report, group: group)
        noteNews()
    }
}
