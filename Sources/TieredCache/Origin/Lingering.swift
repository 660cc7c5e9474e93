import HTTPCaching

/// Lets transfers go on for a moment after their reader has left.
///
/// A player that seeks or reconnects often comes back at the next byte; it then continues the
/// transfer instead of making a new one. At most two seconds, and at most 1 MiB more.
enum Lingering {
    /// How long a transfer goes on that no reader waits for: what is read through has no more
    /// patience with an origin that does not come to the end of what the reader has got.
    static let limit = Duration.seconds(2)
    /// How many bytes it brings meanwhile; what is under way by then is the rest of the 1 MiB.
    static let amount: Int64 = 768 << 10

    /// Keeps the shares in the transfers, from outside of any task of the caller's.
    static func begin(
        _ transfers: [Subscription],
        of entry: DiskEntry,
        _ shared: SharedTransfers,
        _ time: any TimeSource
    ) {
        let running = transfers.filter { $0.outcome == nil }
        guard !running.isEmpty else { return }
        // Looked at by the transfer itself, since the task below may come late. What cannot be
        // resumed is left to the task, so that a reader that comes at once finds a transfer to
        // join.
        if shared.generation?.head.validator != nil {
            for transfer in running { transfer.linger(for: amount) }
        }
        Task {
            let start = entry.storedRanges.count
            let end = time.monotonicTime().advanced(by: limit)
            // One for all waits: bytes that come meanwhile do not set it anew.
            let alarm = time.alarm(after: limit) { shared.signal.bump() }
            defer { alarm.cancel() }
            while time.monotonicTime() < end, entry.storedRanges.count - start < amount {
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
