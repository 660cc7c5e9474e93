import Testing

@testable import TieredCacheProxy

/// The guard and SwiftNIO's parser behind it; `make fuzz` goes on where these stop.
@Suite("Guard and parser", .timeLimit(.minutes(10)))
struct RequestLawsTests {
    @Test(
        "Both see the same requests, and what reaches a handler is read in one way",
        arguments: [1, 5, .max]
    )
    func examples(size: Int) throws {
        let samples = RequestGuardTests.good + RequestGuardTests.bad.map(\.0)
        for sample in samples + [RequestGuardTests.good.joined()] {
            try RequestLaws.check(Array(sample.utf8), pieces: size)
        }
    }

    @Test("The same holds for spoilt requests", arguments: [1, 2, 3, 4] as [UInt64])
    func spoilt(seed: UInt64) throws {
        var random = SplitMix64(seed: seed)
        let samples = RequestGuardTests.good + RequestGuardTests.bad.map(\.0)
        let special = Array("\r\n :;,\t0aAfF\"=\0\u{7F}-".utf8)
        for round in 0..<400 {
            var bytes: [UInt8] = []
            for _ in 0..<2 { bytes += Array((samples.randomElement(using: &random) ?? "").utf8) }
            for _ in 0...Int.random(in: 0..<4, using: &random) {
                let place = Int.random(in: 0..<bytes.count, using: &random)
                let byte = special.randomElement(using: &random) ?? 0
                switch Int.random(in: 0..<3, using: &random) {
                case 0: bytes.insert(byte, at: place)
                case 1: bytes.remove(at: place)
                default: bytes[place] = byte
                }
            }
            let size = Int.random(in: 1..<6, using: &random)
            #expect(throws: Never.self, "seed \(seed), round \(round)") {
                try RequestLaws.check(bytes, pieces: size)
            }
        }
    }
}
