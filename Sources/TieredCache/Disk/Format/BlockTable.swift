/// Which blocks of a body are stored, by their checksums, and which of them this process has
/// verified.
///
/// The checksum is the state (invariant 2): 0 means not stored. Pure arithmetic; does no I/O.
struct BlockTable: Sendable {
    /// Bytes per block.
    static let blockSize: Int64 = 65_536
    /// The largest length of a stored body, whatever the limit: the table of one takes 1 GiB.
    static let maximumLength: Int64 = 8 << 40

    /// The complete length, once known.
    ///
    /// Blocks beyond it are dropped when it is set.
    var completeLength: Int64? {
        didSet { clip() }
    }
    /// One checksum per block up to the last one stored; 0 = not stored.
    private(set) var checksums: [UInt64] = []
    private var verified: [UInt64] = []
    private(set) var storedCount = 0
    private(set) var verifiedCount = 0

    init(completeLength: Int64?, checksums: [UInt64] = []) {
        self.completeLength = completeLength
        self.checksums = checksums
        storedCount = checksums.count { $0 != 0 }
        verified = Array(repeating: 0, count: (checksums.count + 63) / 64)
        clip()
    }

    /// How many blocks `length` bytes make.
    static func blockCount(_ length: Int64) -> Int64 {
        length / blockSize + (length % blockSize == 0 ? 0 : 1)
    }

    /// The block that holds `offset`.
    static func block(at offset: Int64) -> Int { Int(offset / blockSize) }

    /// Where the first block starts that has nothing before `offset`; `nil` behind the last one
    /// that can be named.
    static func start(atOrBehind offset: Int64) -> Int64? {
        let start = offset / blockSize * blockSize
        guard start < offset else { return start }
        let (next, overflow) = start.addingReportingOverflow(blockSize)
        return overflow ? nil : next
    }

    /// Whether every block of a body of known length is stored.
    var isComplete: Bool {
        guard let completeLength else { return false }
        return Int64(storedCount) == Self.blockCount(completeLength)
    }

    /// Whether every stored block has been verified.
    var isVerified: Bool { verifiedCount == storedCount }

    /// The bytes of a block; the last one of a known length is short.
    func extent(of block: Int) -> Range<Int64> {
        let whole = Self.extent(around: Int64(block) * Self.blockSize)
        return whole.lowerBound..<min(whole.upperBound, completeLength ?? .max)
    }

    /// All of the block that holds `offset`; the last one that can be named ends where numbers do.
    static func extent(around offset: Int64) -> Range<Int64> {
        let start = offset / blockSize * blockSize
        let (end, overflow) = start.addingReportingOverflow(blockSize)
        return start..<(overflow ? .max : end)
    }

    func isStored(_ block: Int) -> Bool {
        block >= 0 && block < checksums.count && checksums[block] != 0
    }

    func isVerified(_ block: Int) -> Bool {
        block < checksums.count && verified[block / 64] >> UInt64(block % 64) & 1 == 1
    }

    /// Records that a block's bytes are on disk; the writer knows them, so it is verified.
    mutating func insert(_ block: Int, checksum: UInt64) {
        while checksums.count <= block {
            if checksums.count % 64 == 0 { verified.append(0) }
            checksums.append(0)
        }
        if checksums[block] == 0 { storedCount += 1 }
        // 0 would say that the block is not stored (invariant 2).
        checksums[block] = checksum == 0 ? 1 : checksum
        verify(block)
    }

    /// Records that a block's bytes match its checksum.
    mutating func verify(_ block: Int) {
        guard isStored(block), !isVerified(block) else { return }
        verified[block / 64] |= 1 << UInt64(block % 64)
        verifiedCount += 1
    }

    /// Records that all stored blocks match, as this process found earlier.
    mutating func verifyAll() {
        for block in checksums.indices {
            verify(block)
        }
    }

    /// Makes a block a gap.
    mutating func lose(_ block: Int) {
        guard isStored(block) else { return }
        if isVerified(block) {
            verified[block / 64] &= ~(1 << UInt64(block % 64))
            verifiedCount -= 1
        }
        checksums[block] = 0
        storedCount -= 1
    }

    private mutating func clip() {
        guard let completeLength else { return }
        let limit = Int(clamping: Self.blockCount(completeLength))
        guard checksums.count > limit else { return }
        for block in limit..<checksums.count {
            lose(block)
        }
        checksums.removeSubrange(limit...)
        verified.removeSubrange(min(verified.count, (limit + 63) / 64)...)
    }
}

extension BlockTable {
    /// The bytes stored, in ascending order.
    var storedRanges: ByteRangeSet {
        var result = ByteRangeSet()
        var block = 0
        while block < checksums.count {
            guard isStored(block) else {
                block += 1
                continue
            }
            let end = endOfRun(from: block)
            result.insert(extent(of: block).lowerBound..<extent(of: end - 1).upperBound)
            block = end
        }
        return result
    }

    /// The last block that is stored.
    var lastStored: Int? { storedCount > 0 ? checksums.lastIndex { $0 != 0 } : nil }

    /// The number of bytes stored.
    var storedBytes: Int64 {
        guard let last = lastStored else { return 0 }
        let short = Self.blockSize - (extent(of: last).upperBound - extent(of: last).lowerBound)
        return Int64(storedCount) * Self.blockSize - short
    }

    /// The longest run of stored bytes around `offset`.
    func storedRun(containing offset: Int64) -> Range<Int64>? {
        guard offset >= 0, offset < completeLength ?? .max else { return nil }
        let block = Self.block(at: offset)
        guard isStored(block) else { return nil }
        var first = block
        while isStored(first - 1) {
            first -= 1
        }
        let last = endOfRun(from: block) - 1
        return extent(of: first).lowerBound..<extent(of: last).upperBound
    }

    /// The first blocks missing in `range`, whole: from the start of the first to the end of the
    /// last in a row, both possibly outside `range`; `nil` if none is missing.
    func nextGap(in range: Range<Int64>) -> Range<Int64>? {
        let range = range.clamped(to: 0..<(completeLength ?? .max))
        guard !range.isEmpty else { return nil }
        var block = Self.block(at: range.lowerBound)
        let lastBlock = Self.block(at: range.upperBound - 1)
        while isStored(block), block <= lastBlock {
            block += 1
        }
        guard block <= lastBlock else { return nil }
        let end = nextStored(after: block, atMost: lastBlock + 1)
        return extent(of: block).lowerBound..<extent(of: end - 1).upperBound
    }

    private func nextStored(after block: Int, atMost limit: Int) -> Int {
        var end = block + 1
        while end < min(limit, checksums.count), !isStored(end) {
            end += 1
        }
        return end < limit && !isStored(end) ? limit : end
    }

    private func endOfRun(from block: Int) -> Int {
        var end = block
        while isStored(end) {
            end += 1
        }
        return end
    }
}
