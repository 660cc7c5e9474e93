import Testing

@_spi(Benchmarks) @testable import TieredCache

/// What a closing store writes down, as bytes.
@Suite("Disk: snapshot", .timeLimit(.minutes(10)))
struct IndexSnapshotTests {
    private static func slots(_ count: Int, shard: Int = 0xAB) -> [DiskIndex.Slot] {
        (0..<count).map { slot($0, shard) }
    }

    private static func slot(_ number: Int, _ shard: Int) -> DiskIndex.Slot {
        let high = UInt64(shard) << 56 | UInt64(number)
        let low = UInt64(number) &* 0x9E37_79B9_7F4A_7C15
        return DiskIndex.Slot(
            name: EntryName(digest: MD5Digest(high: high, low: low)),
            generation: UInt64(number) << 40,
            recordBytes: Int64(number) * 512,
            bodyBytes: Int64(number % 3) << 37,
            hasBody: number % 2 == 1,
            lastUse: UInt64(number) << 30,
            queue: DiskIndex.Queue.allCases[number % 3]
        )
    }

    private static func stamp(_ modified: Int64) -> IndexSnapshot.Stamp {
        IndexSnapshot.Stamp(modified: modified, origin: .max - 7)
    }

    private func decode(_ bytes: [UInt8]) -> [DiskIndex.Slot]? {
        bytes.withUnsafeBytes { bytes in
            IndexSnapshot.header(bytes).flatMap { IndexSnapshot.slots($0, in: bytes) }
        }
    }

    @Test("a section is read as it was written", arguments: [0, 1, 2, 300])
    func roundTrip(count: Int) throws {
        let slots = Self.slots(count)
        #expect(slots.allSatisfy(IndexSnapshot.canHold))
        let bytes = IndexSnapshot.encode(shard: 0xAB, stamp: Self.stamp(-5), slots)
        #expect(bytes.count == 40 + 40 * count)
        let header = try #require(bytes.withUnsafeBytes(IndexSnapshot.header))
        #expect(header.shard == 0xAB && header.count == count && header.stamp == Self.stamp(-5))
        let read = try #require(decode(bytes))
        #expect(read.map(\.name) == slots.map(\.name))
        #expect(read.map(\.generation) == slots.map(\.generation))
        #expect(read.map(\.recordBytes) == slots.map(\.recordBytes))
        #expect(read.map(\.bodyBytes) == slots.map(\.bodyBytes))
        #expect(read.map(\.lastUse) == slots.map(\.lastUse))
        #expect(read.map(\.hasBody) == slots.map(\.hasBody))
        #expect(read.map(\.queue) == slots.map(\.queue))
    }

    @Test("a flipped bit anywhere is noticed")
    func flipped() {
        let bytes = IndexSnapshot.encode(shard: 0xAB, stamp: Self.stamp(9), Self.slots(3))
        for index in bytes.indices {
            for bit in 0..<8 {
                var damaged = bytes
                damaged[index] ^= 1 << bit
                #expect(decode(damaged) == nil, "byte \(index), bit \(bit)")
            }
        }
        for count in 0..<bytes.count {
            #expect(decode(Array(bytes[..<count])) == nil)
        }
    }

    @Test("entries of another directory are not taken, whatever the checksum says")
    func foreign() {
        #expect(decode(IndexSnapshot.encode(shard: 1, stamp: Self.stamp(9), Self.slots(2))) == nil)
    }

    @Test("a body too large for the format is left out")
    func tooLarge() {
        var slot = Self.slots(1)[0]
        slot.bodyBytes = 512 << 30
        #expect(!IndexSnapshot.canHold(slot))
    }
}
