/// How large the offsets and lengths of bodies may be.
public enum ByteOffset {
    /// 4 EiB, which no body has: offsets and lengths below it are believed, others are not.
    ///
    /// Two numbers below it, or one and the size of a block, can be added without overflow; so they
    /// are checked once, where they are read, and not at each sum.
    public static let limit: Int64 = 1 << 62
}

extension ByteRangeSpec {
    /// The same bytes, as far as offsets are below ``ByteOffset/limit``.
    ///
    /// No body has a byte behind that, so an answer is the same for both.
    public var clamped: ByteRangeSpec {
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
