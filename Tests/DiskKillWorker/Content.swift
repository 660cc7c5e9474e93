/// SplitMix64.
struct SeededGenerator: RandomNumberGenerator {
    var state: UInt64

    mutating func next() -> UInt64 {
        state &+= 0x9E37_79B9_7F4A_7C15
        var mixed = (state ^ state >> 30) &* 0xBF58_476D_1CE4_E5B9
        mixed = (mixed ^ mixed >> 27) &* 0x94D0_49BB_1331_11EB
        return mixed ^ mixed >> 31
    }
}

/// What a body is: a part of one long row of bytes, named by the entry's metadata.
struct Content {
    /// Where it begins in the row, in units of 64 bytes.
    var start: Int
    var count: Int

    static let row: [UInt8] = {
        var generator = SeededGenerator(state: 1)
        var words = (0..<(1 << 17)).map { _ in generator.next() }
        return words.withUnsafeMutableBytes { Array($0) }
    }()

    init(_ generator: inout SeededGenerator) {
        start = Int(generator.next() % 8192)
        count = [0, 700, 5000, 65_536, 70_000, 200_000, 400_000][Int(generator.next() % 7)]
    }

    /// Reads what ``metadata(_:)`` has written.
    init?(_ metadata: [UInt8]) {
        guard metadata.count >= 8 else { return nil }
        start = metadata[..<4].reduce(0) { $0 << 8 | Int($1) }
        count = metadata[4..<8].reduce(0) { $0 << 8 | Int($1) }
        guard start < 8192, count <= 400_000 else { return nil }
    }

    /// Names the content; `padding` makes the record longer.
    func metadata(padding: Int) -> [UInt8] {
        [start, count].flatMap { number in
            (0..<4).reversed().map { UInt8(truncatingIfNeeded: number >> (8 * $0)) }
        } + [UInt8](repeating: 7, count: padding)
    }

    func withBytes<Result, Failure: Error>(
        _ range: Range<Int>,
        _ body: (UnsafeRawBufferPointer) throws(Failure) -> Result
    ) throws(Failure) -> Result {
        try Self.row.withUnsafeBufferPointer { (row) throws(Failure) in
            let first = 64 * start + range.lowerBound
            return try body(
                UnsafeRawBufferPointer(
                    rebasing: UnsafeRawBufferPointer(row)[first..<(first + range.count)]
                )
            )
        }
    }
}
