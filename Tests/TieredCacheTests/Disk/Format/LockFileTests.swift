import Testing

@_spi(Benchmarks) @testable import TieredCache

/// What LOCK says, and what it is taken for where another program wrote it.
@Suite("Disk: LOCK", .timeLimit(.minutes(10)))
struct LockFileTests {
    @Test("a claim is read as it was written", arguments: [0, 1, 4096, 1 << 40, (1 << 60) - 1])
    func roundTrip(claim: Int64) {
        let written = LockFile(claim: claim)
        #expect(written.encoded.count == LockFile.length)
        let read = LockFile(String(decoding: written.encoded, as: UTF8.self))
        #expect(read.claim == claim)
        #expect(read.owner == written.owner)
    }

    @Test("without a claim there is the owner alone")
    func ownerAlone() {
        let written = LockFile(claim: nil)
        let read = LockFile(String(decoding: written.encoded, as: UTF8.self))
        #expect(read.claim == nil)
        #expect(read.owner == written.owner)
        #expect(LockFile("4711\n").owner == 4711)
    }

    @Test(
        "anything else claims nothing",
        arguments: [
            "", "\n", "12\n\n", "12\n77\n", "12\n77 0\n", "12\n-1 5\n", "12\n77 0 0\n", "x\ny z\n",
            "12\n9999999999999999999999 1\n", "12\n 77  1 \n", "\u{0}\u{0}\u{0}\n1 1",
        ]
    )
    func garbage(text: String) {
        #expect(LockFile(text).claim == nil)
    }

    @Test("no single flipped bit makes another claim")
    func flipped() {
        let right = LockFile(claim: 123_456_789).encoded
        for bit in 0..<(right.count * 8) {
            var text = right
            text[bit / 8] ^= 1 << UInt8(bit % 8)
            let claim = LockFile(String(decoding: text, as: UTF8.self)).claim
            #expect(claim == nil || claim == 123_456_789, "bit \(bit)")
        }
    }

    @Test("a claim too large to be one is none, even with its checksum")
    func huge() {
        for claim in [Int64.max, 1 << 60] {
            let text = String(decoding: LockFile(claim: claim).encoded, as: UTF8.self)
            #expect(LockFile(text).claim == nil)
        }
    }
}
