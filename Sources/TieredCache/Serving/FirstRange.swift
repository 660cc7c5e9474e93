import HTTPCaching

/// The one place that decides which bytes are requested first.
enum FirstRange {
    /// The first bytes that a reader requests; a reader that leaves at once costs no more than
    /// these.
    ///
    /// - Parameters:
    ///   - offset: the first byte.
    ///   - end: the end of the bytes that the reader is certain to read; nil if unknown.
    /// - Returns: the range to request.
    static func ofReader(at offset: Int64, expectedEnd end: Int64?) -> Range<Int64> {
        let options = ReadAheadPlanner.Options()
        let least = max(options.head - offset, options.minimum)
        let size = end.map { min(max(offset + 1, $0) - offset, options.maximumRequest) } ?? least
        return offset..<offset.clampedSum(size)
    }

    /// The same for a requested range; nil for a suffix, as the length may be unknown.
    static func ofReader(for spec: ByteRangeSpec?) -> Range<Int64>? {
        switch spec {
        case nil: ofReader(at: 0, expectedEnd: nil)
        case .openEnded(let start): ofReader(at: start, expectedEnd: nil)
        case .bounded(let range): ofReader(at: range.lowerBound, expectedEnd: range.upperBound)
        case .suffix: nil
        }
    }

    /// The bytes that a transfer requests from the origin: whole blocks, as only those are stored.
    static func ofTransfer(for spec: ByteRangeSpec?) -> Range<Int64> {
        let blockSize = BlockTable.blockSize
        switch spec {
        case nil:
            return 0..<Int64.max
        case .bounded(let range):
            let first = range.lowerBound / blockSize * blockSize
            // An application may ask for a range up to `Int64.max`.
            let (end, overflow) = range.upperBound.addingReportingOverflow(blockSize - 1)
            return first..<(overflow ? .max : end / blockSize * blockSize)
        case .openEnded(let start):
            return (start / blockSize * blockSize)..<Int64.max
        case .suffix:
            // The first block brings the complete length, and with it the start of the suffix.
            return 0..<blockSize
        }
    }
}

extension CacheRequest {
    /// The end of the bytes that a reader wants at first; nil if it takes what comes.
    var firstHorizon: Int64? {
        guard scope != nil, case .bounded(let range) = self.range else { return nil }
        // The transfer brings whole blocks.
        return BlockTable.extent(around: range.upperBound - 1).upperBound
    }
}
