import FoundationEssentials

/// A whole body in memory, read at any offset.
final class MemoryMedium: ReaderMedium {
    let control = ReadControl(signal: ProgressSignal())
    let counts = ByteCounts()
    private let bytes: Data

    init(_ bytes: Data) {
        self.bytes = bytes
    }

    var length: Int64? { Int64(bytes.count) }
    var isSeekable: Bool { true }
    var storageTrouble: CacheError? { nil }

    func readAtOnce(_ read: Read) -> Int? {
        guard read.offset < Int64(bytes.count) else { return 0 }
        let count = read.destination.copy(bytes.dropFirst(Int(read.offset)))
        counts.add(fromCache: Int64(count))
        return count
    }

    func read(_ read: Read, until deadline: MonotonicTime) async throws(CacheError) -> Int {
        readAtOnce(read) ?? 0
    }
}
