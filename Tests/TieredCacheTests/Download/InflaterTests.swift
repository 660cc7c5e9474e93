import CZlib
import Testing

@testable import TieredCache

@Suite("Inflater", .timeLimit(.minutes(10)))
struct InflaterTests {
    /// What zlib makes of `bytes`: 31 is gzip, 15 is zlib, -15 is bare deflate.
    static func coded(_ bytes: [UInt8], windowBits: Int32) -> [UInt8] {
        var stream = z_stream()
        deflateInit2_(
            &stream,
            6,
            Z_DEFLATED,
            windowBits,
            8,
            Z_DEFAULT_STRATEGY,
            ZLIB_VERSION,
            Int32(MemoryLayout<z_stream>.size)
        )
        defer { deflateEnd(&stream) }
        var input = bytes
        let capacity = bytes.count + 1000
        return [UInt8](unsafeUninitializedCapacity: capacity) { output, count in
            input.withUnsafeMutableBufferPointer { input in
                stream.next_in = input.baseAddress
                stream.avail_in = UInt32(input.count)
                stream.next_out = output.baseAddress
                stream.avail_out = UInt32(capacity)
                deflate(&stream, Z_FINISH)
                count = capacity - Int(stream.avail_out)
            }
        }
    }

    private func decode(
        _ bytes: [UInt8],
        _ coding: ContentCoding,
        step: Int
    ) throws -> (output: [UInt8], isComplete: Bool) {
        let inflater = Inflater(coding)
        var output: [UInt8] = []
        var start = 0
        while start < bytes.count {
            let end = min(bytes.count, start + step)
            inflater.supply(BodyChunk(Array(bytes[start..<end])))
            while let piece = try inflater.next() {
                #expect((1...Inflater.pieceSize).contains(piece.count))
                output += piece
            }
            start = end
        }
        return (output, inflater.isComplete)
    }

    private static func sample(seed: UInt64, count: Int) -> [UInt8] {
        var random = SplitMix(seed: seed)
        var bytes: [UInt8] = []
        while bytes.count < count {
            let byte = UInt8(truncatingIfNeeded: random.next())
            bytes += Array(repeating: byte, count: Int(random.next() % 40))
        }
        return bytes
    }

    @Test("All three formats come out as they went in, in pieces of any size")
    func roundTrip() throws {
        for (seed, count) in [(1, 0), (2, 1), (3, 5000), (4, 300_000)] {
            let bytes = Self.sample(seed: UInt64(seed), count: count)
            for (bits, coding) in [(31, ContentCoding.gzip), (15, .deflate), (-15, .deflate)] {
                let coded = Self.coded(bytes, windowBits: Int32(bits))
                for step in [1 + coded.count / 500, 1000, coded.count] {
                    let result = try decode(coded, coding, step: step)
                    #expect(result.output == bytes, "seed \(seed), \(bits), step \(step)")
                    #expect(result.isComplete)
                }
            }
        }
    }

    @Test("Several gzip members are one body; padding after them is ignored")
    func members() throws {
        let one = Self.coded(Array("one ".utf8), windowBits: 31)
        let two = Self.coded(Array("two".utf8), windowBits: 31)
        for step in [1, 7, 1000] {
            let result = try decode(one + two + [0, 0, 0], .gzip, step: step)
            #expect(result.output == Array("one two".utf8))
            #expect(result.isComplete)
        }
    }

    @Test("Small input that swells is handed out in bounded pieces")
    func bomb() throws {
        let bytes = [UInt8](repeating: 0, count: 8 << 20)
        let result = try decode(Self.coded(bytes, windowBits: 31), .gzip, step: 1 << 20)
        #expect(result.output.count == bytes.count)
    }

    @Test("Cut and damaged data are noticed")
    func damaged() throws {
        let bytes = Self.sample(seed: 9, count: 3000)
        let coded = Self.coded(bytes, windowBits: 31)
        #expect(try !decode(Array(coded.dropLast(5)), .gzip, step: 100).isComplete)
        #expect(throws: Inflater.InvalidData.self) {
            try decode(Array("<html>not gzip</html>".utf8), .gzip, step: 100)
        }
        var flipped = coded
        flipped[flipped.count - 6] ^= 1
        #expect(throws: Inflater.InvalidData.self) { try decode(flipped, .gzip, step: 100) }
        #expect(try decode([], .gzip, step: 1).isComplete)
    }
}
