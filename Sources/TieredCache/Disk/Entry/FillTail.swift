/// The end of a running fill that is not a block yet: readable, and only in memory.
///
/// `range` and the bytes in it change under the entry's lock. While a full tail is being written to
/// disk, outside the lock, nobody changes it: its fill is the only writer, and it is waiting.
final class FillTail: @unchecked Sendable {
    // Unchecked for the reason above.
    private let bytes: UnsafeMutableRawBufferPointer
    /// Where the bytes belong in the body; starts at a block.
    var range: Range<Int64>
    /// Set once the fill has ended, whatever the outcome.
    var isEnded = false

    init(at offset: Int64) {
        bytes = .allocate(byteCount: Int(BlockTable.blockSize), alignment: 64)
        range = offset..<offset
    }

    deinit {
        bytes.deallocate()
    }

    var count: Int { Int(range.upperBound - range.lowerBound) }

    /// What was received and not written yet.
    var contents: UnsafeRawBufferPointer {
        UnsafeRawBufferPointer(rebasing: UnsafeRawBufferPointer(bytes)[..<count])
    }

    func append(_ more: UnsafeRawBufferPointer) {
        bytes[count..<(count + more.count)].copyBytes(from: more)
        range = range.lowerBound..<(range.upperBound + Int64(more.count))
    }

    /// Goes on behind what has been written.
    func advance(to offset: Int64) {
        range = offset..<offset
    }

    func copy(at offset: Int64, into buffer: UnsafeMutableRawBufferPointer) -> Int {
        let start = Int(offset - range.lowerBound)
        let count = min(buffer.count, self.count - start)
        buffer.copyMemory(from: UnsafeRawBufferPointer(rebasing: contents[start..<(start + count)]))
        return count
    }
}
