import Foundation
import HTTPCaching
import TestParts
import Testing

@_spi(Benchmarks) @testable import TieredCache

/// The head of a record: what is written is read, and nothing else is.
@Suite("Disk: record", .timeLimit(.minutes(10)))
struct RecordTests {
    private static func record(
        _ name: String = "k",
        metadata: [UInt8] = [1, 2, 3],
        length: Int64? = 70_000
    ) -> Record {
        Record(
            key: key(name),
            metadata: metadata,
            generation: 0x0123_4567_89AB_CDEF,
            completeLength: length,
            created: WallTime(nanoseconds: 1_234_567_890),
            flags: [.pinned],
            lastUse: 99
        )
    }

    private func decode(_ bytes: [UInt8], _ key: CacheKey? = nil) -> RecordDecoding {
        bytes.withUnsafeBytes { Record.decode($0, expecting: key) }
    }

    @Test(
        "a record is read as it was written",
        arguments: [0, 1, 5, 6, 7, 8, 4000],
        [nil, 0, 70_000, BlockTable.maximumLength] as [Int64?]
    )
    func roundTrip(metadata: Int, length: Int64?) throws {
        let written = Self.record(metadata: bytes(metadata), length: length)
        let encoded = written.encode(table: [7, 0, 9])
        #expect(Int64(encoded.count) == written.tableOffset + 24)
        #expect(written.tableOffset % 8 == 0)
        guard case .record(let read) = decode(encoded, key("k")) else {
            Issue.record("no record")
            return
        }
        #expect(read.key == written.key)
        #expect(read.metadata == written.metadata)
        #expect(read.generation == written.generation)
        #expect(read.completeLength == length)
        #expect(read.created == written.created)
        #expect(read.flags == written.flags)
        #expect(read.lastUse == 99)
        let table = encoded[Int(read.tableOffset)...].withUnsafeBytes {
            Record.decodeTable($0, blocks: 100)
        }
        #expect(table == [7, 0, 9])
    }

    @Test(
        "a body longer than any that is stored is damage",
        arguments: [1 << 43 + 1, 1 << 62, .max]
    )
    func tooLong(length: Int64) {
        guard case .damaged = decode(Self.record(length: length).encode(table: [7])) else {
            Issue.record("it was taken for a record")
            return
        }
    }

    @Test("the layout is the documented one")
    func layout() {
        let encoded = Self.record().encode(table: [0x0807_0605_0403_0201])
        #expect(encoded[0..<8] == [0x89, 0x54, 0x43, 0x72, 0x65, 0x63, 0x02, 0x0A])
        #expect(encoded[16..<24] == [99, 0, 0, 0, 0, 0, 0, 0])
        #expect(encoded[24..<28] == [2, 0, 0, 0])
        #expect(encoded[28..<32] == [0, 0, 1, 0])
        #expect(encoded[32..<40] == [0xEF, 0xCD, 0xAB, 0x89, 0x67, 0x45, 0x23, 0x01])
        #expect(encoded[60..<64] == [3, 0, 0, 0])
        #expect(Array(encoded.suffix(8)) == [1, 2, 3, 4, 5, 6, 7, 8])
    }

    @Test("another key under the same name is not taken for the one looked for")
    func otherKey() {
        guard case .otherKey = decode(Self.record("k").encode(table: []), key("l")) else {
            Issue.record("taken")
            return
        }
    }

    @Test("a head that is cut off asks for what is missing, or is damaged")
    func cutOff() {
        let encoded = Self.record(metadata: bytes(100)).encode(table: [1])
        for count in 0..<encoded.count {
            switch decode(Array(encoded[..<count])) {
            case .record: #expect(count >= 64 + 5 + 100)
            case .needsBytes(let needed): #expect(needed > count && needed <= encoded.count)
            case .damaged: #expect(count < Record.fixedLength)
            case .otherKey: Issue.record("another key in \(count) bytes")
            }
        }
    }

    @Test("any single bit that is covered and flipped is damage")
    func everyBit() {
        let encoded = Self.record().encode(table: [])
        let headEnd = Record.fixedLength + key("k").string.utf8.count + 3
        for bit in 0..<(8 * headEnd) where !(128..<192).contains(bit) {
            var flipped = encoded
            flipped[bit / 8] ^= 1 << UInt8(bit % 8)
            if case .record = decode(flipped) { Issue.record("bit \(bit) is not covered") }
        }
    }

    /// Two million damaged heads, or a tenth of them where not all cases run: random bytes, flips,
    /// cuts and lengths, half of them with a checksum that is right again, so that what lies behind
    /// it is reached as well.
    @Test("no bytes whatever trap the decoder", .tags(.seeded), arguments: [1, 2] as [UInt64])
    func mutations(seed: UInt64) {
        var mutator = RecordMutator(seed: seed, Self.record().encode(table: [1, 2]))
        for number in 0..<(TestCases.all ? 1_000_000 : 100_000) {
            let isAccepted = mutator.withNext { bytes, isSealed in
                for expected in [nil, key("k")] {
                    guard case .record(let record) = Record.decode(bytes, expecting: expected)
                    else { continue }
                    return record.tableOffset >= 64 && record.metadata.count <= bytes.count
                        && (record.completeLength ?? 0) >= 0 && isSealed
                }
                return true
            }
            #expect(isAccepted, "seed \(seed), case \(number)")
        }
    }
}

/// Damages a record, in place and without allocating: there are many cases.
private struct RecordMutator {
    private let original: [UInt8]
    private var bytes: [UInt8]
    private var generator: SeededGenerator

    init(seed: UInt64, _ original: [UInt8]) {
        self.original = original
        bytes = original
        generator = SeededGenerator(seed: seed)
    }

    /// Lends damaged bytes, and whether their checksum is right although they are.
    mutating func withNext(_ body: (UnsafeRawBufferPointer, _ isSealed: Bool) -> Bool) -> Bool {
        let choice = generator.next()
        var generator = self.generator
        defer { self.generator = generator }
        let original = original
        let headEnd = Record.fixedLength + key("k").string.utf8.count + 3
        return bytes.withUnsafeMutableBytes { bytes in
            bytes.copyBytes(from: original)
            // The last use is not covered: what is only damaged there is a record all the same.
            for _ in 0..<(1 + choice % 4) {
                Self.damage(bytes, &generator)
            }
            // Damages may undo each other, or lie behind what the checksum covers.
            let isIntact = original.withUnsafeBytes { whole in
                guard let left = whole.baseAddress, let right = bytes.baseAddress else {
                    return true
                }
                return memcmp(left, right, headEnd) == 0
            }
            let isSealed = choice >> 16 & 1 == 0
            if isSealed { Self.seal(bytes) }
            let isCut = choice >> 17 & 7 == 0
            let count = isCut ? Int(choice >> 24 % UInt64(bytes.count + 1)) : bytes.count
            return body(
                UnsafeRawBufferPointer(rebasing: UnsafeRawBufferPointer(bytes)[..<count]),
                isSealed || isIntact
            )
        }
    }

    private static func damage(
        _ bytes: UnsafeMutableRawBufferPointer,
        _ generator: inout SeededGenerator
    ) {
        let random = generator.next()
        let position = 24 + Int(random >> 8 % UInt64(bytes.count - 24))
        switch random % 4 {
        case 0: bytes[position] ^= 1 << UInt8(random >> 40 & 7)
        case 1: bytes[position] = UInt8(truncatingIfNeeded: random >> 40)
        case 2:
            // A length, mostly a hostile one.
            let value = UInt32(truncatingIfNeeded: random >> 32) >> UInt32(random >> 20 % 32)
            bytes.storeBytes(of: value, toByteOffset: random & 4 == 0 ? 56 : 60, as: UInt32.self)
        default:
            bytes.storeBytes(of: generator.next(), toByteOffset: 40, as: UInt64.self)
        }
    }

    /// Makes the checksum right for whatever the lengths say now, if they stay within the bytes.
    private static func seal(_ bytes: UnsafeMutableRawBufferPointer) {
        let keyLength = Int(bytes.load(fromByteOffset: 56, as: UInt32.self))
        let metadataLength = Int(bytes.load(fromByteOffset: 60, as: UInt32.self))
        let end = min(Record.fixedLength + keyLength + metadataLength, bytes.count)
        bytes.put(checksumOf(UnsafeRawBufferPointer(bytes)[24..<end]), at: 8)
        bytes.put(UInt32(BlockTable.blockSize), at: 28)
        bytes.put(checksumOf(UnsafeRawBufferPointer(bytes)[24..<end]), at: 8)
    }
}
