import Testing
import TieredCacheTesting

@Suite("Generated bodies", .timeLimit(.minutes(10)))
struct GeneratedBodyTests {
    @Test("Any part equals the same part of the whole")
    func parts() {
        let body = GeneratedBody(seed: 7, length: 20_000)
        let whole = body.bytes()
        #expect(whole.count == 20_000)
        for range in [0..<1, 0..<8, 3..<5, 4_090..<4_110, 4_096..<8_192, 5..<20_000, 7..<7]
            as [Range<Int>]
        {
            let part = body.bytes(in: Int64(range.lowerBound)..<Int64(range.upperBound))
            #expect(part == Array(whole[range]), "\(range)")
            #expect(body.matches(part, at: Int64(range.lowerBound)))
        }
    }

    @Test("Bytes at a wrong place, of another seed, or beyond the end do not match")
    func mismatches() {
        let body = GeneratedBody(seed: 7, length: 1 << 20)
        let page = body.bytes(in: 8_192..<12_288)
        #expect(!body.matches(page, at: 4_096))
        #expect(!body.matches(page, at: 8_193))
        #expect(!body.matches(page, at: (1 << 20) - 1))
        #expect(!body.matches(page, at: -1))
        #expect(!GeneratedBody(seed: 8, length: 1 << 20).matches(page, at: 8_192))
        #expect(body.matches([], at: 1 << 20))
    }

    @Test("A body of a tebibyte costs nothing until it is read")
    func huge() {
        let body = GeneratedBody(seed: 1, length: 1 << 40)
        #expect(body.bytes(in: (1 << 40) - 5..<1 << 40).count == 5)
        #expect(body == GeneratedBody(seed: 1, length: 1 << 40))
        #expect(body != GeneratedBody(seed: 2, length: 1 << 40))
    }
}
