import Testing

@_spi(Benchmarks) @testable import TieredCache

/// Ranges of bytes, checked against a set of numbers.
@Suite("Disk: byte range set", .timeLimit(.minutes(10)))
struct ByteRangeSetTests {
    @Test("ranges that touch or overlap are joined")
    func joins() {
        #expect(ByteRangeSet([0..<3, 3..<5]).ranges == [0..<5])
        #expect(ByteRangeSet([4..<6, 0..<2]).ranges == [0..<2, 4..<6])
        #expect(ByteRangeSet([0..<2, 4..<6, 8..<9, 1..<8]).ranges == [0..<9])
        #expect(ByteRangeSet([5..<5]).isEmpty)
    }

    @Test("the widest range there is does not trap")
    func widest() {
        var set = ByteRangeSet([0..<Int64.max])
        set.insert((.max - 1)..<(.max))
        #expect(set.ranges == [0..<Int64.max])
        #expect(set.gaps(in: 0..<Int64.max).isEmpty)
        #expect(set.range(containing: 7) == 0..<Int64.max)
    }

    @Test("the set is that of its numbers", arguments: 0..<50 as Range<UInt64>)
    func model(seed: UInt64) {
        var generator = SeededGenerator(seed: seed)
        var set = ByteRangeSet()
        var model: Set<Int64> = []
        for step in 0..<30 {
            let start = Int64.random(in: 0..<60, using: &generator)
            let range = start..<Int64.random(in: start...60, using: &generator)
            if step % 3 < 2 {
                set.insert(range)
                model.formUnion(range)
            } else if step % 2 == 0 {
                set.remove(range)
                model.subtract(range)
            }
            #expect(Set(set.ranges.flatMap { $0 }) == model, "seed \(seed), step \(step)")
            #expect(set.count == Int64(model.count))
            #expect(set.contains(range) == model.isSuperset(of: range))
            #expect(
                set.gaps(in: range).ranges.flatMap { $0 } == range.filter { !model.contains($0) }
            )
            #expect((set.range(containing: start) != nil) == model.contains(start))
            for (left, right) in zip(set.ranges, set.ranges.dropFirst()) {
                #expect(left.upperBound < right.lowerBound, "seed \(seed), step \(step)")
            }
        }
    }
}
