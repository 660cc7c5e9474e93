/// The readers of each transfer, to detect transfers without active readers.
///
/// A reader that has requested no bytes for a while, and is far behind, has stopped reading: its
/// transfer releases its slot (invariant 12). A reader that waits for bytes has not stopped.
struct ReaderRegistry {
    /// How long a reader may be silent before it counts as stopped.
    static let silenceLimit = Duration.seconds(2)
    /// How far, in bytes, a transfer runs ahead of readers that have stopped.
    static let lead: Int64 = 4 << 20

    private struct Reader {
        var transfer: TransferID?
        var position: Int64
        var lastSeen: MonotonicTime
        var isWaiting = false
    }

    private var readers: [UInt64: Reader] = [:]
    private var lastReader: UInt64 = 0

    /// Adds a reader of `transfer`.
    mutating func enter(at position: Int64, transfer: TransferID?, now: MonotonicTime) -> UInt64 {
        lastReader += 1
        readers[lastReader] = Reader(transfer: transfer, position: position, lastSeen: now)
        return lastReader
    }

    /// Moves a reader to another transfer, or to none.
    ///
    /// - Returns: whether that changes its transfer.
    mutating func didJoin(_ transfer: TransferID?, reader: UInt64) -> Bool {
        guard let before = readers[reader], before.transfer != transfer else { return false }
        readers[reader]?.transfer = transfer
        return true
    }

    /// The reader requests the bytes from `position` on.
    ///
    /// - Returns: its transfer.
    mutating func didAsk(
        _ reader: UInt64,
        at position: Int64,
        now: MonotonicTime
    ) -> TransferID? {
        readers[reader]?.position = position
        readers[reader]?.lastSeen = now
        readers[reader]?.isWaiting = true
        return readers[reader]?.transfer
    }

    /// The reader has received bytes, or an error.
    mutating func didAnswer(_ reader: UInt64, now: MonotonicTime) {
        readers[reader]?.lastSeen = now
        readers[reader]?.isWaiting = false
    }

    mutating func leave(_ reader: UInt64) {
        readers[reader] = nil
    }

    /// Whether all readers of a transfer at `offset` have stopped.
    ///
    /// False for a transfer without readers: requests that wait for its head are not registered
    /// yet.
    func haveStopped(_ transfer: TransferID, at offset: Int64, now: MonotonicTime) -> Bool {
        var hasReader = false
        for reader in readers.values where reader.transfer == transfer {
            hasReader = true
            guard !reader.isWaiting, offset - reader.position >= Self.lead,
                reader.lastSeen.duration(to: now) >= Self.silenceLimit
            else { return false }
        }
        return hasReader
    }
}
