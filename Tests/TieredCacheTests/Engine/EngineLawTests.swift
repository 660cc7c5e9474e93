import TestParts
import Testing

@testable import TieredCache

/// The law of ``EngineLaw`` for inputs of a seeded generator; `Fuzzing/` has it for libFuzzer's.
@Suite(.timeLimit(.minutes(10)))
struct EngineLawTests {
    @Test(
        "Whatever an origin answers: no trap, right bytes, an end",
        .tags(.seeded),
        arguments: TestCases.few(1, of: UInt64(0)..<8)
    )
    func random(part: UInt64) async {
        for number in 0..<250 {
            let seed = part &* 1_000_003 &+ UInt64(number)
            var random = SplitMix(seed: seed)
            let input = (0..<160).map { _ in UInt8.random(in: 0...255, using: &random) }
            let breach = await EngineLaw.breach(input)
            #expect(breach == nil, "seed \(seed)")
        }
    }
}
