import HTTPCaching

// Back-pressure: a transfer whose readers want no more for now, or have stopped.
extension StoringSink {
    /// Whether the transfer may pause where its readers want no more for now.
    ///
    /// It could be resumed should the connection be lost meanwhile, and its readers ask for more as
    /// they read: those of an origin without ranges take what comes.
    func mayPause(at offset: Int64) -> Bool {
        guard let generation else { return false }
        let head = generation.head
        return head.validator != nil && !state.repeatsStored
            && state.end == operation.plan.range.upperBound
            && !head.flags.contains(.withoutRanges)
            && generation.entry.completeLength.map { offset < $0 } ?? true
    }

    /// How long a transfer keeps its connection for readers that want no more for now.
    ///
    /// Less than the idle timeouts of servers: a connection that they close counts as a failure.
    static let longestPause = Duration.seconds(15)

    /// Keeps the connection, without a slot, until a reader wants more; ends the transfer if none
    /// does for long, or if many keep one.
    func pauseAtHorizon() async throws(CacheError) {
        notifyReaders()
        if context.stallIfRoom() {
            let limit = Self.longestPause
            await operation.shared.pause(
                context.id,
                .atHorizon,
                atMost: limit,
                by: origins.time
            )
        }
        guard !context.isCancelled, context.update({ $0.giveUp() }) ?? false else {
            return try await context.unstall()
        }
        state.hasGivenUp = true
    }

    /// Releases the slot while all readers have stopped reading, as they have (invariant 12).
    ///
    /// Only if the download could be resumed should the connection be lost meanwhile; other
    /// downloads run to their end.
    func pauseForReaders() async throws(CacheError) {
        guard generation?.head.validator != nil else { return }
        notifyReaders()
        context.stall()
        await operation.shared.pause(context.id, .forReaders, by: origins.time)
        try await context.unstall()
    }
}
