import Testing

@_spi(Benchmarks) @testable import TieredCache

/// Names of files: ours are recognised, no other is.
@Suite("Disk: entry names", .timeLimit(.minutes(10)))
struct EntryNameTests {
    private let name = EntryName(
        digest: MD5Digest(high: 0xAB01_2345_6789_CDEF, low: 0x0011_2233_4455_6677)
    )
    private let hex = "ab0123456789cdef0011223344556677"

    @Test("the paths are the documented ones")
    func paths() {
        #expect(name.shard == "ab")
        #expect(name.shardNumber == 0xAB)
        #expect(name.record == "ab/\(hex).record")
        #expect(name.body(0xF0) == "ab/\(hex).00000000000000f0.body")
        #expect(name.staged(.max) == "\(hex).ffffffffffffffff.record")
        #expect(EntryName.shard(0) == "00")
    }

    @Test("what was made is recognised")
    func recognised() {
        #expect(EntryFileName("\(hex).record") == .record(name))
        #expect(EntryFileName("\(hex).00000000000000f0.body") == .body(name, generation: 0xF0))
        #expect(EntryFileName("\(hex).ffffffffffffffff.record") == .staged(name, generation: .max))
    }

    @Test(
        "what is not exactly that is not ours",
        arguments: [
            "", ".", "..", ".record", "FORMAT", "ab", "\u{0}",
            "ab0123456789cdef001122334455667.record", "ab0123456789cdef00112233445566777.record",
            "AB0123456789cdef0011223344556677.record", "ab0123456789cdef0011223344556677",
            "ab0123456789cdef0011223344556677.records", "ab0123456789cdef0011223344556677.record~",
            "ab0123456789cdef0011223344556677.body", "ab0123456789cdef0011223344556677.f0.body",
            "ab0123456789cdef0011223344556677.00000000000000F0.body",
            "ab0123456789cdef0011223344556677.+0000000000000f0.body",
            "ab0123456789cdef0011223344556677.00000000000000f0.body.x",
            "ab0123456789cdef0011223344556677.00000000000000f0.",
            "ab0123456789cdef001122334455667\u{301}.record",
        ]
    )
    func notOurs(text: String) {
        #expect(EntryFileName(text) == nil)
    }

    @Test("the key's MD5 names the file")
    func digest() {
        #expect(EntryName(digest: CacheKey(stored: "").digest).record.hasSuffix("427e.record"))
    }
}
