import Testing

@testable import TieredCacheTesting

@Suite("Stored gzip", .timeLimit(.minutes(10)))
struct StoredGzipTests {
    @Test("The check value of CRC-32")
    func checksum() {
        #expect(StoredGzip.checksum(Array("123456789".utf8)) == 0xCBF4_3926)
        #expect(StoredGzip.checksum([]) == 0)
    }

    @Test("Blocks hold the bytes and the trailer their number", arguments: [0, 1, 65_535, 65_536])
    func blocks(count: Int) {
        let coded = StoredGzip.encode(Array(repeating: 7, count: count))
        let blockCount = max(1, (count + 0xFFFE) / 0xFFFF)
        #expect(coded.count == 10 + 5 * blockCount + count + 8)
        #expect(coded.suffix(4).reversed().reduce(0) { $0 << 8 | Int($1) } == count)
    }
}
