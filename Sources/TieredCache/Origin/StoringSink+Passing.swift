import HTTPCaching

// Delivery past the disk, for bytes that must not or cannot be stored (invariant 9).
extension StoringSink {
    func pass(
        _ chunk: BodyChunk,
        at offset: Int64,
        to window: WindowBody
    ) async throws(CacheError) {
        guard window.isFull else { return try await window.append(chunk, at: offset) }
        notifyReaders()
        // A reader that has stopped, or reads slowly, must not occupy a slot (invariant 12): the
        // transfer has its slot only to fill the buffer.
        let start = origins.time.monotonicTime()
        if state.pace.isSlow {
            context.stall()
            try await window.waitForRoom(below: WindowBody.lowMark)
        } else {
            try await waitWithPatience(for: window)
        }
        let end = origins.time.monotonicTime()
        state.pace.didWait(from: start, to: end)
        try await context.unstall()
        let granted = origins.time.monotonicTime()
        state.pace.didWaitForSlot(from: end, to: granted)
        try await window.append(chunk, at: offset)
    }

    /// Waits for room in the window, and releases the slot after one second without any.
    private func waitWithPatience(for window: WindowBody) async throws(CacheError) {
        let time = origins.time
        let context = context
        let timeout = Task {
            do {
                try await time.sleep(for: .seconds(1))
                context.stall()
            } catch {
                // Cancelled: there was space in time.
            }
        }
        defer { timeout.cancel() }
        try await window.waitForRoom()
        timeout.cancel()
        // The timeout must not stall the transfer after the slot was acquired again.
        await timeout.value
    }

    /// Bypasses the disk from now on, after the disk has refused a chunk (invariant 9).
    func bypassDisk(
        _ chunk: BodyChunk,
        at offset: Int64,
        generation: SharedTransfers.Generation,
        error: CacheError
    ) async throws(CacheError) {
        guard case .storing(_, let writer) = state.mode else { throw error }
        recorder.didFailToStore(
            operation.request.key,
            target: operation.request.target,
            error: error
        )
        setPromise(nil)
        let entry = generation.entry
        let position = max(offset, min(writer?.position ?? offset, offset + Int64(chunk.count)))
        let start = min(writer?.sealedEnd ?? offset, position)
        // Bytes of an incomplete block were counted as stored, and are not stored after all.
        state.stored -= max(0, offset - start)
        // The unsealed end is readable only while its writer is open.
        let tail = start < position ? entry.readAll(start..<position) : []
        // Those of a body that is too long have these bytes already.
        if passingDigests == nil {
            let expected = state.expected
            passingDigests = operation.shared.beginDigests(expected, of: entry, to: position)
        }
        let window = openWindow(
            from: start,
            to: state.end,
            completeLength: entry.completeLength,
            head: generation.head
        )
        passingDigests?.take(chunk, at: offset)
        // While the unsealed end can be read: its readers then find the decision.
        if let length = entry.completeLength { comparePassing(to: length) }
        try await window.append(BodyChunk(tail), at: start)
        writer?.end()
        context.report.didBypassDisk(SharedTransfers.Bypass(window: window, reason: .disk(error)))
        noteChange()
        try await pass(chunk, at: offset, to: window)
    }

    /// Notes what a body is compared with, and begins its digests if it is too long to be whole on
    /// disk; no reader waits for what is stored to be read for that.
    ///
    /// The client of a relay can verify its response itself.
    func beginComparing(_ generation: SharedTransfers.Generation, at offset: Int64) {
        let expected =
            operation.request.relay == nil ? operation.expectedDigests(of: generation.head) : []
        let isTooLong = !expected.isEmpty && generation.entry.isTooLong
        state.expected = expected
        passingDigests =
            isTooLong
            ? operation.shared.beginDigests(
                expected,
                of: generation.entry,
                to: offset,
                reading: BodyDigester.slice
            ) : nil
    }

    /// Notes bytes that are about to be written.
    ///
    /// If they are the last missing ones, this transfer compares what the disk refuses of them, or
    /// all of a body that is too long.
    ///
    /// - Returns: a token to end with ``DiskEntry/endArrival(_:)``; nil unless these are the last
    ///   missing bytes.
    func willStore(
        _ chunk: BodyChunk,
        at offset: Int64,
        of generation: SharedTransfers.Generation
    ) -> BodyDecision.Comparison? {
        let entry = generation.entry
        let isLast: Bool
        if let digests = passingDigests, let length = entry.completeLength {
            digests.take(chunk, at: offset)
            isLast = digests.isWhole(to: length)
        } else {
            isLast = entry.lacks(only: offset..<offset + Int64(chunk.count))
        }
        return isLast ? entry.beginArrival() : nil
    }

    /// Compares a body of which the disk has not taken all, once all of it has come; its entry, if
    /// there is one, has the decision.
    ///
    /// Before the end can be told to their readers. Later calls find what the first one found.
    ///
    /// - Parameter length: the length of the body; nil if it ends with the last byte received.
    /// - Returns: what was found; nil if bytes are missing.
    @discardableResult
    func comparePassing(to length: Int64?) -> BodyDecision.Outcome? {
        guard let outcome = state.passed ?? compare(to: length) else { return nil }
        if case .right = outcome, case .passing(let window, _) = state.mode {
            window.didCompare()
        }
        return outcome
    }

    private func compare(to length: Int64?) -> BodyDecision.Outcome? {
        let mode = state.mode
        guard let digests = passingDigests, let head = mode.head else { return nil }
        let entry = storedEntry
        // Behind what filled a gap come stored bytes.
        if let entry, let length, case .passing(let window, _) = mode,
            digests.position >= window.end
        {
            digests.take(entry, to: length)
        }
        guard digests.isWhole(to: length) else { return nil }
        let outcome = operation.outcome(ofPassing: digests, to: length, head: head)
        state.passed = outcome
        if let entry {
            let wanted = BodyExpectation(
                promised: head.promisedDigests,
                expected: operation.request.expectedDigests
            )
            entry.didPass(wanted, outcome: outcome)
        }
        return outcome
    }

    /// The entry that has the bytes before those that bypass the disk.
    private var storedEntry: DiskEntry? {
        guard case .storing(let generation)? = context.report.outcome else { return nil }
        return generation.entry
    }
}
