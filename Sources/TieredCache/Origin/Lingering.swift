import HTTPCaching

/// Lets transfers continue for a moment after their reader has left.
///
/// A player that seeks or reconnects often returns at the next byte; it then joins the transfer
/// instead of starting one. Lasts at most two seconds, and at most 1 MiB more: all of its rest, if
/// that is no longer. One that has paused brings the rest of its block.
enum Lingering {
    /// How long a transfer without readers continues.
    ///
    /// A body read to its end waits no longer than this for an origin that has sent the last byte
    /// but does not end the response.
    static let limit = Duration.seconds(2)
    /// How many bytes it may bring meanwhile; bytes in flight by then make up the rest of the 1
    /// MiB.
    static let amount: Int64 = 768 << 10

    /// Keeps the subscriptions alive in a task of its own.
    static func begin(
        _ transfers: [Subscription],
        of entry: DiskEntry,
        shared: SharedTransfers,
        time: any TimeSource
    ) {
        let running = transfers.filter { $0.outcome == nil }
        guard !running.isEmpty else { return }
        // The transfer itself checks this limit, as the task below may run late. A body that cannot
        // be resumed is left to the task, so that a reader that comes at once finds a transfer to
        // join.
        let isResumable = shared.generation?.head.validator != nil
        for transfer in running { transfer.linger(for: isResumable ? amount : .max) }
        shared.didExtend()
        Task {
            let start = entry.storedRanges.count
            let end = time.monotonicTime().advanced(by: limit)
            // One alarm for all waits: arriving bytes do not extend it.
            let alarm = time.alarm(after: limit) { shared.signal.bump() }
            defer { alarm.cancel() }
            while time.monotonicTime() < end,
                isResumable || entry.storedRanges.count - start < amount
            {
                let seen = shared.signal.version
                guard running.contains(where: { $0.outcome == nil }), time.monotonicTime() < end
                else { break }
                await shared.signal.wait(after: seen)
            }
            for transfer in running {
                transfer.cancel()
            }
        }
    }
}
