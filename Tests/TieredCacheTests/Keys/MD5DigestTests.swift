import Testing

@_spi(Benchmarks) @testable import TieredCache

@Suite("MD5Digest", .timeLimit(.minutes(10)))
struct MD5DigestTests {
    @Test
    func `The text is that of the bytes in order`() {
        let digest = MD5Digest(high: 0x0123_4567_89ab_cdef, low: 0xfedc_ba98_7654_3210)
        #expect(digest.hexadecimal == "0123456789abcdeffedcba9876543210")
        #expect("\(digest)" == digest.hexadecimal)
    }

    @Test
    func `Text and halves convert both ways`() throws {
        var random = SplitMix(seed: 3)
        for _ in 0..<1000 {
            let digest = MD5Digest(high: random.next(), low: random.next())
            #expect(MD5Digest(hexadecimal: digest.hexadecimal) == digest)
        }
    }

    @Test(arguments: [
        "", "0123456789abcdeffedcba987654321", "0123456789abcdeffedcba98765432100",
        "0123456789ABCDEFfedcba9876543210", "0123456789abcdefg edcba987654321",
        "0123456789abcdeffedcba98765432é0", "0x23456789abcdeffedcba9876543210",
    ])
    func `Anything but 32 lower-case digits is refused`(text: String) {
        #expect(MD5Digest(hexadecimal: text) == nil)
    }
}
