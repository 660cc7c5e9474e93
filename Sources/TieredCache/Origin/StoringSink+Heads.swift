import HTTPCaching
import HTTPTypes

// Heads: a new entry, the stored entry, or a window that bypasses the disk.
extension StoringSink {
    /// Makes the place of the bytes that follow a head.
    ///
    /// - Parameters:
    ///   - head: the head.
    ///   - start: the start of its body.
    ///   - body: all of the body, if it may be stored at once.
    /// - Returns: whether `body` is stored, or passed on; otherwise it is to be written.
    /// - Throws: `.representationChanged` if a reader has bytes of another one; `.cancelled`.
    func beginGeneration(
        with head: DownloadHead,
        start: GenerationStart,
        whole body: BodyChunk? = nil
    ) async throws(CacheError) -> Bool {
        if start.contradictsStored, let stored = generation ?? operation.base {
            operation.shared.didContradict(stored.entry)
        }
        var stored = operation.storedResponse(head, start: start)
        if start.areRangesUntrusted { stored.flags.insert(.withoutRanges) }
        // A request that joins the transfer for the new body waits for its first byte, not for the
        // first byte of the range.
        context.update { $0.restart(at: start.offset) }
        if operation.plan.wantsWhole(after: start, response: head.response) {
            // A reader takes the whole body in order from an origin that does not support ranges;
            // and a range of a changed representation has no meaning.
            state.end = .max
            context.update { $0.extend(to: .max) }
            if operation.plan.generation == nil,
                head.response.headerFields[.acceptRanges]?.lowercased() != "bytes"
            {
                stored.flags.insert(.withoutRanges)
            }
        }
        if operation.plan.hasIgnoredRanges(start, response: head.response) {
            // The entry may belong to another transfer that has stored some of it.
            state.repeatsStored = true
        }
        if case .passing(let window, let known) = state.mode, !window.claim() {
            // Its reader has seen a head, so only the same body from its start can follow.
            guard stored.isSameShape(as: known),
                stored.promisedDigests == known.promisedDigests,
                window.restart(start: start.offset, completeLength: start.completeLength)
            else { throw CacheError.changed(operation.request.target) }
            return false
        }
        if operation.stored != nil {
            recorder.didRevalidate(operation.request.key, isUnchanged: false)
        }
        notifyReaders()
        try await operation.shared.acquireEntryCreation()
        defer { operation.shared.releaseEntryCreation() }
        setPromise(nil)
        switch try operation.makeEntry(
            for: stored,
            head: head,
            start: start,
            end: state.end,
            whole: body,
            context: context
        ) {
        case .success(let place):
            setPromise(place.promise)
            var generation = SharedTransfers.Generation(
                head: stored,
                entry: place.entry,
                received: operation.receivedResponse(for: head, start: start, stored: stored)
            )
            if case .storing(_, let old?) = state.mode { end(old) }
            enter(.storing(generation, nil))
            if let body, place.hasBody {
                generation.body = body.copy
                didTake(body)
                state.stored += Int64(body.count)
            }
            publish(.storing(generation))
            return place.hasBody
        case .failure(let reason):
            let known =
                operation.receivedResponse(for: head, start: start, stored: stored) ?? stored
            if let body, stored.promisedDigests.isEmpty {
                didTake(body)
                publish(
                    .passing(
                        known,
                        SharedTransfers.Bypass(bytes: .whole(body.copy), reason: reason)
                    )
                )
                return true
            }
            beginPassing(
                with: known,
                from: start.offset,
                length: start.completeLength,
                isVerbatim: start.isVerbatim,
                reason: reason
            )
            return false
        }
    }

    /// All of a body is here: who asks for it from now on, as after a removal, is not answered with
    /// it.
    private func didTake(_ body: BodyChunk) {
        state.received += Int64(body.count)
        context.update { $0.shrink(to: 0) }
    }

    private func beginPassing(
        with head: StoredResponse,
        from offset: Int64,
        length: Int64?,
        isVerbatim: Bool,
        reason: NotStored
    ) {
        let before = state.mode
        let window = openWindow(
            from: offset,
            to: isVerbatim ? .max : state.end,
            completeLength: length,
            head: head
        )
        if case .storing(_, let shared?) = before { end(shared) }
        publish(.passing(head, SharedTransfers.Bypass(bytes: .window(window), reason: reason)))
    }

    /// Delivers to a window from now on.
    func openWindow(
        from start: Int64,
        to end: Int64,
        completeLength: Int64?,
        head: StoredResponse
    ) -> WindowBody {
        // No other request can use bytes that are not stored, so none may join from now on.
        context.update { $0.shrink(to: 0) }
        let window = WindowBody(start: start, end: end, completeLength: completeLength)
        enter(.passing(window, head))
        return window
    }

    func continueGeneration(
        _ head: DownloadHead,
        from offset: Int64,
        length: Int64?
    ) throws(CacheError) {
        let repeats = head.response.status == .ok
        if repeats {
            takeWhole()
            // At once: a job may end this transfer early.
            origins.didIgnoreRange(operation.request)
        }
        guard case .idle = state.mode else { return }
        guard let base = operation.base else {
            throw CacheError(.originFailed, "a part of a representation that is not stored")
        }
        // The response says whether its bytes are stored.
        _ = base.entry.checkWritable()
        var stored = operation.freshened(base, by: head, completeLength: length)
        if repeats {
            stored = operation.markWithoutRanges(stored, response: head.response, entry: base.entry)
        }
        let generation = SharedTransfers.Generation(head: stored, entry: base.entry)
        enter(.storing(generation, nil))
        publish(.storing(generation))
    }

    /// Accepts the whole body again from an origin that does not support ranges.
    private func takeWhole() {
        state.repeatsStored = true
        guard operation.plan.policy.acceptsWholeBodies else { return }
        state.end = .max
        context.update { $0.extend(to: .max) }
    }

    private func publish(_ answer: SharedTransfers.Outcome) {
        var group = operation.isForOneReader ? nil : operation.group
        if case .storing(let generation) = answer {
            operation.judge.enter(generation.entry)
            let selected = operation.shared.group(for: generation.head.selectingFields)
            if group == operation.shared.group, group != selected {
                context.update { $0.move(to: selected) }
                group = selected
            }
        }
        operation.shared.didReceiveHead(answer, of: context, group: group)
        noteChange()
    }
}
