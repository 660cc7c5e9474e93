/// SplitMix64: random numbers that a seed repeats.
struct SeededGenerator: RandomNumberGenerator {
    private var state: UInt64

    init(seed: UInt64) {
        state = seed
    }

    mutating func next() -> UInt64 {
        state &+= 0x9E37_79B9_7F4A_7C15
        var mixed = state
        mixed = (mixed ^ (mixed >> 30)) &* 0xBF58_476D_1CE4_E5B9
        mixed = (mixed ^ (mixed >> 27)) &* 0x94D0_49BB_1331_11EB
        return mixed ^ (mixed >> 31)
    }

    /// A text of up to `count` pieces drawn from `pieces`, with single bytes thrown in.
    mutating func text(of pieces: [String], count: Int) -> String {
        var text = ""
        for _ in 0..<Int.random(in: 0...count, using: &self) {
            if Int.random(in: 0..<8, using: &self) == 0 {
                text.unicodeScalars.append(Unicode.Scalar(UInt8.random(in: 0...255, using: &self)))
            } else {
                text += pieces[Int.random(in: 0..<pieces.count, using: &self)]
            }
        }
        return text
    }
}
