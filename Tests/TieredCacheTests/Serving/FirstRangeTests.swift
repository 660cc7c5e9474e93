import HTTPCaching
import Testing

@testable import TieredCache

@Suite("The first range to ask for", .timeLimit(.minutes(1)))
struct FirstRangeTests {
    private static let block: Int64 = 64 << 10
    private static let head: Int64 = 256 << 10
    private static let most: Int64 = 4 << 20

    @Test("A reader asks for the rest of the head, and elsewhere for one block")
    func readerWithoutEnd() {
        #expect(FirstRange.ofReader(at: 0, expectedEnd: nil) == 0..<Self.head)
        #expect(FirstRange.ofReader(at: 1000, expectedEnd: nil) == 1000..<Self.head)
        #expect(
            FirstRange.ofReader(at: 200_000, expectedEnd: nil) == 200_000..<200_000 + Self.block
        )
        #expect(
            FirstRange.ofReader(at: 1 << 30, expectedEnd: nil) == 1 << 30..<1 << 30 + Self.block
        )
        #expect(FirstRange.ofReader(at: .max - 10, expectedEnd: nil) == .max - 10..<Int64.max)
    }

    @Test("A reader that says where it ends asks for no more, and for one byte at least")
    func readerWithEnd() {
        #expect(FirstRange.ofReader(at: 10, expectedEnd: 20) == 10..<20)
        #expect(FirstRange.ofReader(at: 10, expectedEnd: 5) == 10..<11)
        #expect(FirstRange.ofReader(at: 10, expectedEnd: .max) == 10..<10 + Self.most)
    }

    @Test("What a request names is asked for as a reader at that place does")
    func requests() {
        #expect(FirstRange.ofReader(for: nil) == 0..<Self.head)
        let middle: Int64 = 3_000_000
        #expect(
            FirstRange.ofReader(for: .openEnded(from: middle)) == middle..<middle + Self.block
        )
        #expect(FirstRange.ofReader(for: .bounded(middle..<middle + 5)) == middle..<middle + 5)
        #expect(FirstRange.ofReader(for: .suffix(5)) == nil)
    }

    @Test("A transfer asks for whole blocks")
    func transfers() {
        #expect(FirstRange.ofTransfer(for: nil) == 0..<Int64.max)
        #expect(FirstRange.ofTransfer(for: .bounded(1..<2)) == 0..<Self.block)
        let first = Self.block - 1
        #expect(FirstRange.ofTransfer(for: .bounded(first..<Self.block + 1)) == 0..<2 * Self.block)
        #expect(FirstRange.ofTransfer(for: .bounded(5..<Int64.max)) == 0..<Int64.max)
        #expect(
            FirstRange.ofTransfer(for: .openEnded(from: Self.block + 5)) == Self.block..<Int64.max
        )
        #expect(FirstRange.ofTransfer(for: .suffix(5)) == 0..<Self.block)
    }
}
