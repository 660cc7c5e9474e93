/// Who reads what a transfer brings, and whether anybody still does.
///
/// A reader that has not asked for bytes for a while, and is far behind, has stopped reading: its
/// transfer gives its slot back (invariant 12). One that waits for bytes never has.
struct ReaderRegistry {
    /// How long a reader may be silent before it counts as stopped.
    static let patience = Duration.seconds(2)
    /// How far a transfer runs ahead of readers that have stopped.
    static let lead: Int64 = 4 << 20

    private struct Reader {
        var transfer: TransferID?
        var position: Int64
        var lastSeen: MonotonicTime
        var isWaiting = false
    }

    private var readers: [UInt64: Reader] = [:]
    private var lastReader: UInt64 = 0

    /// Takes in a reader of `transfer`.
    mutating func enter(at position: Int64, transfer: TransferID?, now: MonotonicTime) -> UInt64 {
        lastReader += 1
        readers[lastReader] = Reader(transfer: transfer, position: position, lastSeen: now)
        return lastReader
    }

    /// The reader is in a transfer now, or in none.
    ///
    /// - Returns: whether it was in another one before.
    mutating func didJoin(_ transfer: TransferID?, reader: UInt64) -> Bool {
        guard let before = readers[reader], before.transfer != transfer else { return false }
        readers[reader]?.transfer = transfer
        return true
    }

    /// The reader wants the bytes from `position` on.
    mutating func didAsk(_ reader: UInt64, at position: Int64, now: MonotonicTime) {
        readers[reader]?.position = position
        readers[reader]?.lastSeen = now
        readers[reader]?.isWaiting = true
    }

    /// The reader has got bytes, or an error, and does with them what it wants.
    mutating func didAnswer(_ reader: UInt64, now: MonotonicTime) {
        readers[reader]?.lastSeen = now
        readers[reader]?.isWaiting = false
    }

    mutating func leave(_ reader: UInt64) {
        readers[reader] = nil
    }

    /// Whether all readers of a transfer that has come to `offset` have stopped.
    ///
    /// False for a transfer without readers: those who wait for its head are not on the roll yet.
    func haveStopped(_ transfer: TransferID, at offset: Int64, now: MonotonicTime) -> Bool {
        var hasReader = false
        for reader in readers.values where reader.transfer == transfer {
            hasReader = true
            guard !reader.isWaiting, offset - reader.position >= Self.lead,
                reader.lastSeen.duration(to: now) >= Self.patience
            else { return false }
        }
        return hasReader
    }
}
