import Testing

@testable import TieredCacheCLI

@Suite("Block map", .timeLimit(.minutes(10)))
struct BlockMapTests {
    @Test("cells say whether all, some or none of their part is stored")
    func cells() {
        #expect(BlockMap.text(stored: [0..<100], length: 100, width: 10) == "[##########]")
        #expect(BlockMap.text(stored: [], length: 100, width: 10) == "[..........]")
        #expect(BlockMap.text(stored: [0..<25, 90..<95], length: 100, width: 10) == "[##+......+]")
        #expect(BlockMap.text(stored: [0..<3], length: 3, width: 10) == "[###]")
        #expect(BlockMap.text(stored: [1..<2], length: 3, width: 10) == "[.#.]")
    }

    @Test("an empty body, an unknown length and the largest one are no trouble")
    func extremes() {
        #expect(BlockMap.text(stored: [], length: 0) == "[]")
        #expect(BlockMap.text(stored: [], length: nil) == "[?]")
        #expect(BlockMap.text(stored: [0..<50], length: nil, width: 5) == "[#####?]")
        #expect(BlockMap.text(stored: [0..<1], length: .max, width: 4) == "[+...]")
        #expect(BlockMap.text(stored: [0..<Int64.max], length: .max, width: 4) == "[####]")
    }

    @Test("durations are two units long at most")
    func durations() {
        #expect(EntryExplanation.text(.seconds(9)) == "9 s")
        #expect(EntryExplanation.text(.seconds(428)) == "7 min 8 s")
        #expect(EntryExplanation.text(.seconds(5 * 3600 + 6 * 60)) == "5 h 6 min")
        #expect(EntryExplanation.text(.seconds(3 * 86_400 + 4 * 3600 + 5)) == "3 d 4 h")
    }
}
