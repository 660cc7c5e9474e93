import FoundationEssentials

/// The body of a response that is read as a reader reads: in bounded requests, a little ahead.
final class ReaderBody: BodySource {
    private let medium: EntryMedium
    private let options: ReaderOptions
    private let position: Guarded<Int64>
    /// Where the body ends; nil while that is not known.
    private let end: Int64?
    /// Where the consumer will stop, if it has said so.
    private let certainEnd: Int64?

    init(
        _ medium: EntryMedium,
        _ wanted: WantedRange,
        certainTo certainEnd: Int64?,
        _ options: ReaderOptions
    ) {
        self.medium = medium
        self.options = options
        position = Guarded(wanted.start)
        end = wanted.end
        self.certainEnd = certainEnd
    }

    var counts: ByteCounts { medium.counts }
    var storageTrouble: CacheError? { medium.storageTrouble }
    var isSuperseded: Bool { medium.entry.isSuperseded }
    var generation: UInt64? { medium.entry.generation }
    var storageKey: CacheKey? { medium.entry.key }

    func next(atMost count: Int) async throws(CacheError) -> Data? {
        let (offset, left) = rest
        let count = min(Int64(count), left)
        guard count > 0 else { return nil }
        let buffer = ReadBuffer(capacity: Int(count))
        let destination = buffer.fill { ReadDestination(buffer: $0) }
        let read = Read(offset: offset, destination: destination, certainEnd: certainEnd)
        let deadline = medium.storage.time.monotonicTime().advanced(by: options.deadline)
        let got = try await medium.read(read, until: deadline)
        guard got > 0 else { return nil }
        position.withLock { $0 += Int64(got) }
        return buffer.data(count: got)
    }

    func lend(_ count: ClosedRange<Int64>) -> LentBytes? {
        let (offset, left) = rest
        let wanted = min(count.upperBound, left)
        guard wanted >= count.lowerBound,
            let lent = medium.lend(
                offset..<offset + wanted,
                atLeast: count.lowerBound,
                certainTo: certainEnd
            )
        else { return nil }
        position.withLock { $0 = lent.range.upperBound }
        return lent
    }

    /// The next byte, and how many there are from there on at most.
    private var rest: (offset: Int64, left: Int64) {
        let offset = position.withLock { $0 }
        return (offset, (end ?? .max) - offset)
    }
}
