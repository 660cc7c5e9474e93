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
        let window = openWindow(
            from: start,
            to: state.end,
            completeLength: entry.completeLength,
            head: generation.head
        )
        try await window.append(BodyChunk(tail), at: start)
        writer?.end()
        context.didBypassDisk(SharedTransfers.Bypass(bytes: .window(window), reason: .disk(error)))
        noteChange()
        try await pass(chunk, at: offset, to: window)
    }
}
