/// Byte ranges that neither overlap nor touch, in ascending order.
package struct ByteRangeSet: Hashable, Sendable {
    /// The ranges, half-open.
    package private(set) var ranges: [Range<Int64>] = []

    /// Creates an empty set.
    package init() {}

    /// Creates a set of the bytes in any of `ranges`.
    package init(_ ranges: some Sequence<Range<Int64>>) {
        for range in ranges {
            insert(range)
        }
    }

    /// Whether no byte is in the set.
    package var isEmpty: Bool { ranges.isEmpty }

    /// The number of bytes.
    package var count: Int64 {
        ranges.reduce(0) { $0 + ($1.upperBound - $1.lowerBound) }
    }

    /// Adds a range; joins what it overlaps or touches.
    ///
    /// - Complexity: O(ranges), O(1) at the end.
    package mutating func insert(_ range: Range<Int64>) {
        guard !range.isEmpty else { return }
        if let last = ranges.last, range.lowerBound > last.upperBound {
            ranges.append(range)
            return
        }
        let first = ranges.firstIndex { $0.upperBound >= range.lowerBound } ?? ranges.endIndex
        let end =
            ranges[first...].firstIndex { $0.lowerBound > range.upperBound } ?? ranges.endIndex
        guard first < end else {
            ranges.insert(range, at: first)
            return
        }
        let lower = min(range.lowerBound, ranges[first].lowerBound)
        let upper = max(range.upperBound, ranges[end - 1].upperBound)
        ranges.replaceSubrange(first..<end, with: CollectionOfOne(lower..<upper))
    }

    /// Takes a range out.
    ///
    /// - Complexity: O(ranges).
    package mutating func remove(_ range: Range<Int64>) {
        guard !range.isEmpty else { return }
        ranges = ranges.flatMap { stored -> [Range<Int64>] in
            guard stored.overlaps(range) else { return [stored] }
            let before = stored.lowerBound..<max(stored.lowerBound, range.lowerBound)
            let after = min(stored.upperBound, range.upperBound)..<stored.upperBound
            return [before, after].filter { !$0.isEmpty }
        }
    }

    /// Whether every byte of `range` is in the set; true for an empty range.
    package func contains(_ range: Range<Int64>) -> Bool {
        range.isEmpty
            || ranges.contains {
                $0.lowerBound <= range.lowerBound && range.upperBound <= $0.upperBound
            }
    }

    /// The range that holds `offset`.
    package func range(containing offset: Int64) -> Range<Int64>? {
        ranges.first { $0.contains(offset) }
    }

    /// The bytes of `range` that are not in the set.
    package func gaps(in range: Range<Int64>) -> ByteRangeSet {
        var result = ByteRangeSet()
        var position = range.lowerBound
        for stored in ranges where stored.upperBound > range.lowerBound {
            guard stored.lowerBound < range.upperBound else { break }
            if stored.lowerBound > position {
                result.insert(position..<stored.lowerBound)
            }
            position = max(position, stored.upperBound)
        }
        if position < range.upperBound {
            result.insert(position..<range.upperBound)
        }
        return result
    }
}
