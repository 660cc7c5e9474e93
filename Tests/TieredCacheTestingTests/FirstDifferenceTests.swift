import FoundationEssentials
import Testing
import TieredCacheTesting

@Suite(.timeLimit(.minutes(1)))
struct FirstDifferenceTests {
    private static let body: [UInt8] = [1, 2, 3, 4]

    @Test("Bodies that are the same differ nowhere, however they are kept")
    func same() {
        #expect(firstDifference(Self.body, Self.body) == nil)
        #expect(firstDifference(Data(Self.body), Self.body) == nil)
        #expect(firstDifference(Self.body[1..<3], Data([2, 3])) == nil)
        #expect(firstDifference(Self.body.lazy.map { $0 }, Self.body) == nil)
        #expect(firstDifference(Data(), [UInt8]()) == nil)
        #expect(firstDifference(nil as Data?, nil as [UInt8]?) == nil)
    }

    @Test("The first byte that is another one, or lacks, is told")
    func different() {
        #expect(firstDifference(Self.body, [1, 2, 9, 9]) == 2)
        #expect(firstDifference(Data(Self.body), Self.body + [5]) == 4)
        #expect(firstDifference(Self.body + [5], Self.body) == 4)
        #expect(firstDifference(nil as Data?, Self.body) == 0)
        #expect(firstDifference([UInt8](), Self.body) == 0)
    }

    @Test("Bodies of megabytes that have nothing in common are told apart at once")
    func large() {
        let zeros = Data(count: 8 << 20)
        #expect(firstDifference(zeros, [UInt8](repeating: 1, count: 8 << 20)) == 0)
    }
}
