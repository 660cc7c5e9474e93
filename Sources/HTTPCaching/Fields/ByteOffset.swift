/// The limit of body offsets and lengths.
public enum ByteOffset {
    /// 4 EiB, more than any body has: larger offsets and lengths are refused.
    ///
    /// Two numbers below it, or one and the size of a block, can be added without overflow. So
    /// numbers are checked once, when they are parsed, and not at each addition.
    public static let limit: Int64 = 1 << 62
}

extension ByteRangeSpec {
    /// The same range, with offsets clamped to ``ByteOffset/limit``.
    ///
    /// No body has bytes beyond the limit, so both ranges select the same bytes.
    package var clamped: ByteRangeSpec {
        switch self {
        case .bounded(let range):
            let first = min(max(0, range.lowerBound), ByteOffset.limit)
            guard range.upperBound <= ByteOffset.limit else { return .openEnded(from: first) }
            return .bounded(first..<max(first, range.upperBound))
        case .openEnded(let offset):
            return .openEnded(from: min(max(0, offset), ByteOffset.limit))
        case .suffix(let count):
            return .suffix(min(max(0, count), ByteOffset.limit))
        }
    }
}
