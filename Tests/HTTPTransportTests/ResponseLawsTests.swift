import HTTPTypes
import Testing

@testable import HTTPTransport

/// The parser beside SwiftNIO's; `make fuzz` goes on where these stop.
@Suite("Parser of responses, and SwiftNIO's", .timeLimit(.minutes(10)))
struct ResponseLawsTests {
    private static let samples =
        ResponseSyntaxTests.taken.map(\.bytes)
        + ResponseSyntaxTests.refused.map(\.bytes).filter { $0.utf8.count < 2000 }

    @Test("Both read the same response, however it is cut", arguments: [1, 5, .max])
    func examples(size: Int) throws {
        var taken = 0
        for sample in Self.samples {
            for method in [HTTPRequest.Method.get, .head] {
                if try ResponseLaws.check(Array(sample.utf8), pieces: size, method: method) {
                    taken += 1
                }
            }
        }
        #expect(taken > 20)
    }

    @Test("The same holds for spoilt responses", arguments: [1, 2, 3, 4] as [UInt64])
    func spoilt(seed: UInt64) throws {
        var random = SplitMix64(seed: seed)
        let special = Array("\r\n :;,\t0aAfF\"=\0\u{7F}-15".utf8)
        for round in 0..<2000 {
            var bytes = Array((Self.samples.randomElement(using: &random) ?? "").utf8)
            for _ in 0...Int.random(in: 0..<4, using: &random) where !bytes.isEmpty {
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
                try ResponseLaws.check(bytes, pieces: size)
            }
        }
    }
}
