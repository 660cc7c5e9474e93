import Testing

@_spi(Benchmarks) @testable import TieredCache

/// Which blocks are stored; checked against a model that is a list of Booleans.
@Suite("Disk: block table", .timeLimit(.minutes(10)))
struct BlockTableTests {
    private let block = BlockTable.blockSize

    @Test("a table is complete when all blocks of a known length are stored")
    func complete() {
        var table = BlockTable(completeLength: 2 * block + 1)
        #expect(!table.isComplete)
        for number in 0..<3 {
            table.insert(number, checksum: UInt64(number))
        }
        #expect(table.isComplete)
        #expect(table.storedBytes == 2 * block + 1)
        #expect(table.storedRanges.ranges == [0..<(2 * block + 1)])
        #expect(table.extent(of: 2) == (2 * block)..<(2 * block + 1))
        #expect(BlockTable(completeLength: 0).isComplete)
        #expect(!BlockTable(completeLength: nil).isComplete)
    }

    @Test("a checksum of 0 is kept as 1, since 0 means not stored")
    func zero() {
        var table = BlockTable(completeLength: nil)
        table.insert(0, checksum: 0)
        #expect(table.checksums == [1])
        #expect(table.isStored(0))
    }

    @Test("blocks beyond the length are dropped when it becomes known")
    func clip() {
        var table = BlockTable(completeLength: nil)
        for number in 0..<130 {
            table.insert(number, checksum: 5)
        }
        table.completeLength = 64 * block
        #expect(table.storedCount == 64)
        #expect(table.verifiedCount == 64)
        #expect(table.isComplete)
        table.insert(70, checksum: 5)
        #expect(table.isVerified(70))
        #expect(!table.isVerified(69))
    }

    @Test("what was read from disk is stored and not verified")
    func unverified() {
        var table = BlockTable(completeLength: 3 * block, checksums: [4, 0, 6, 7])
        #expect(table.checksums.count == 3)
        #expect(table.storedCount == 2)
        #expect(!table.isVerified(0))
        table.verify(0)
        table.verify(0)
        table.verify(1)
        #expect(table.verifiedCount == 1)
        table.verifyAll()
        #expect(table.isVerified)
        table.lose(2)
        table.lose(2)
        #expect((table.storedCount, table.verifiedCount) == (1, 1))
    }

    @Test("hostile lengths and blocks do not trap", arguments: [0, 1, .max] as [Int64])
    func hostile(length: Int64) {
        let table = BlockTable(completeLength: length, checksums: [1, 2, 3])
        #expect(table.storedBytes <= length)
        #expect(!table.isStored(-1))
        #expect(!table.isStored(.max))
        #expect(table.storedRun(containing: -1) == nil)
        #expect(table.storedRun(containing: .max) == nil)
        #expect(table.nextGap(in: length..<length) == nil)
        #expect(BlockTable.blockCount(.max) > 0)
        let endless = BlockTable(completeLength: nil, checksums: [1, 2, 3])
        #expect(endless.nextGap(in: 0..<Int64.max) == 3 * block..<Int64.max)
    }

    @Test("runs, gaps and counts are those of a plain list", arguments: 0..<20 as Range<UInt64>)
    func model(seed: UInt64) {
        var generator = SeededGenerator(seed: seed)
        let count = Int.random(in: 1...140, using: &generator)
        let length = Int64(count) * block - Int64.random(in: 0..<block, using: &generator)
        var table = BlockTable(completeLength: length)
        var stored = [Bool](repeating: false, count: count)
        for step in 0..<200 {
            let number = Int.random(in: 0..<count, using: &generator)
            stored[number] = Int.random(in: 0..<3, using: &generator) > 0
            if stored[number] { table.insert(number, checksum: 3) } else { table.lose(number) }
            let at = Int.random(in: 0..<count, using: &generator)
            #expect(table.storedCount == stored.count { $0 }, "seed \(seed), step \(step)")
            #expect(table.storedRun(containing: Int64(at) * block) == run(stored, at, length))
            #expect(table.nextGap(in: (Int64(at) * block)..<length) == gap(stored, at, length))
            #expect(table.storedRanges.count == table.storedBytes, "seed \(seed), step \(step)")
        }
    }

    private func run(_ stored: [Bool], _ at: Int, _ length: Int64) -> Range<Int64>? {
        guard stored[at] else { return nil }
        let first = (stored[..<at].lastIndex(of: false) ?? -1) + 1
        let end = stored[at...].firstIndex(of: false) ?? stored.count
        return (Int64(first) * block)..<min(Int64(end) * block, length)
    }

    private func gap(_ stored: [Bool], _ at: Int, _ length: Int64) -> Range<Int64>? {
        guard let first = stored[at...].firstIndex(of: false) else { return nil }
        let end = stored[first...].firstIndex(of: true) ?? stored.count
        return (Int64(first) * block)..<min(Int64(end) * block, length)
    }
}
