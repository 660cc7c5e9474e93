/// The end of a running writer that is not a block yet: readable, and only in memory.
///
/// What changes it has the entry's state as a parameter, so it holds the entry's lock.
final class PartialBlock: @unchecked Sendable {
    // Unchecked: other threads read under the entry's lock. Without it the writer alone reads,
    // which is the only writer: so a full tail is written to the disk.
    private let bytes: UnsafeMutableRawBufferPointer
    /// Where the bytes belong in the body; starts at a block.
    private(set) var range: Range<Int64>
    /// Whether the writer has ended, whatever the outcome.
    private(set) var isEnded = false

    init(at offset: Int64) {
        bytes = .allocate(byteCount: Int(BlockTable.blockSize), alignment: 64)
        range = offset..<offset
    }

    deinit {
        bytes.deallocate()
    }

    var count: Int { Int(range.upperBound - range.lowerBound) }

    /// Whether it is a whole block, the last one of a body of that length included.
    func isFull(until length: Int64?) -> Bool {
        count > 0 && (count == BlockTable.blockSize || range.upperBound == length)
    }

    /// What was received and not written yet.
    var contents: UnsafeRawBufferPointer {
        UnsafeRawBufferPointer(rebasing: UnsafeRawBufferPointer(bytes)[..<count])
    }

    func append(_ more: UnsafeRawBufferPointer, state: inout DiskEntryState) {
        bytes[count..<(count + more.count)].copyBytes(from: more)
        range = range.lowerBound..<(range.upperBound + Int64(more.count))
    }

    /// Goes on behind what has been written.
    func advance(to offset: Int64, _ state: inout DiskEntryState) {
        range = offset..<offset
    }

    /// Takes the tail from the entry.
    func end(_ state: inout DiskEntryState) {
        isEnded = true
        state.tails.removeAll { $0 === self }
    }

    /// Copies bytes; its entry calls it under its lock.
    func copy(at offset: Int64, into buffer: UnsafeMutableRawBufferPointer) -> Int {
        let start = Int(offset - range.lowerBound)
        let count = min(buffer.count, self.count - start)
        buffer.copyMemory(from: UnsafeRawBufferPointer(rebasing: contents[start..<(start + count)]))
        return count
    }
}
