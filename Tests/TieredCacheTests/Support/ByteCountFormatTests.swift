import Testing

@testable import TieredCache

@Suite("Byte counts", .timeLimit(.minutes(10)))
struct ByteCountFormatTests {
    static let sizes: [(String, Int64)] = [
        ("0", 0), ("500000", 500_000), ("7B", 7), ("64MiB", 67_108_864), ("2GiB", 2_147_483_648),
        ("1.5GB", 1_500_000_000), ("1.5GiB", 1_610_612_736), ("64m", 67_108_864), ("1k", 1_024),
        ("1 TiB", 1_099_511_627_776), ("1tb", 1_000_000_000_000), ("0.1kb", 100),
        ("0.0004KiB", 0), ("1.9999999999999999999999999GB", 1_999_999_999),
        ("007", 7), ("9223372036854775807", .max), ("8388607TiB", 9_223_370_937_343_148_032),
        ("8388607.999999TiB", 9_223_372_036_853_676_296),
    ]

    @Test(arguments: sizes)
    func `Sizes are read`(text: String, bytes: Int64) throws {
        #expect(try ByteCountFormat.parse(text) == bytes)
    }

    @Test(arguments: [
        "", " ", "-1", "-64MiB", "+1", "MiB", "1.5", "1.", ".5GiB", "1..5GiB", "1.2.3GiB",
        "64 MiB ",
        " 64MiB", "64  MiB", "64MiBs", "64MBit", "1e6", "0x10", "1,5GiB", "1_000", "\u{0661}",
        "NaN",
        "9223372036854775808", "99999999999999999999999", "8388608TiB", "9223372036854775807KiB",
        "64\u{0}", "64MiB\n",
    ])
    func `What is no size is refused, and named`(text: String) throws {
        let error = try #require(throws: CacheError.self) { try ByteCountFormat.parse(text) }
        #expect(error.code == .invalidArgument)
        #expect(error.description.contains("'\(text)'"))
    }

    static let shown: [(Int64, String)] = [
        (0, "0 B"), (1, "1 B"), (1_023, "1023 B"), (1_024, "1 KiB"), (1_536, "1.5 KiB"),
        (2_047, "1.9 KiB"), (67_108_864, "64 MiB"), (1_610_612_736, "1.5 GiB"),
        (1_048_575, "1023.9 KiB"), (.max, "7.9 EiB"), (.min, "-8 EiB"), (-1_536, "-1.5 KiB"),
    ]

    @Test(arguments: shown)
    func `Sizes are written, rounded towards zero`(bytes: Int64, text: String) {
        #expect(ByteCountFormat.format(bytes) == text)
    }

    @Test
    func `What is written can be read again and is never more`() throws {
        var random = SplitMix(seed: 1)
        for _ in 0..<10_000 {
            let bytes =
                Int64.random(in: 0...(.max >> 20), using: &random)
                >> Int64.random(in: 0..<44, using: &random)
            let text = ByteCountFormat.format(bytes)
            let again = try ByteCountFormat.parse(text)
            #expect(again <= bytes && bytes - again <= bytes / 10, "\(bytes) is written \(text)")
        }
    }
}
