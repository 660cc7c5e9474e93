import HTTPCaching

/// Which bytes are asked for first: the one place where that is decided.
enum FirstRange {
    /// What a reader asks the cache for, which is what it may cost if it leaves at once.
    ///
    /// - Parameters:
    ///   - offset: where it begins.
    ///   - end: where the bytes end that it is certain to read; nil if it has not said.
    /// - Returns: the bytes.
    static func ofReader(at offset: Int64, expectedEnd end: Int64?) -> Range<Int64> {
        let options = ReadAheadPlanner.Options()
        let least = max(options.head - offset, options.minimum)
        let size = end.map { min(max(offset + 1, $0) - offset, options.maximumRequest) } ?? least
        return offset..<offset.clampedSum(size)
    }

    /// The same for what a request names; nil for the last bytes of something of unknown length.
    static func ofReader(for spec: ByteRangeSpec?) -> Range<Int64>? {
        switch spec {
        case nil: ofReader(at: 0, expectedEnd: nil)
        case .openEnded(let start): ofReader(at: start, expectedEnd: nil)
        case .bounded(let range): ofReader(at: range.lowerBound, expectedEnd: range.upperBound)
        case .suffix: nil
        }
    }

    /// What a transfer asks the origin for: whole blocks, because only they can be stored.
    static func ofTransfer(for spec: ByteRangeSpec?) -> Range<Int64> {
        let blockSize = BlockTable.blockSize
        switch spec {
        case nil:
            return 0..<Int64.max
        case .bounded(let range):
            let first = range.lowerBound / blockSize * blockSize
            let (end, overflow) = range.upperBound.addingReportingOverflow(blockSize - 1)
            return first..<(overflow ? .max : end / blockSize * blockSize)
        case .openEnded(let start):
            return (start / blockSize * blockSize)..<Int64.max
        case .suffix:
            // Where the suffix begins is known once the first block has told the length.
            return 0..<blockSize
        }
    }
}
