extension MD5 {
    /// RFC 1321 §3 in Swift, for machines whose libcrypto refuses MD5.
    static func portableDigest(of bytes: UnsafeRawBufferPointer) -> MD5Digest {
        var state = State()
        let tail = bytes.count & ~63
        for offset in stride(from: 0, to: tail, by: 64) {
            state.digest(block: UnsafeRawBufferPointer(rebasing: bytes[offset..<offset + 64]))
        }
        state.finish(
            with: UnsafeRawBufferPointer(rebasing: bytes[tail...]),
            bitCount: UInt64(bytes.count) &* 8
        )
        return state.value
    }

    /// The four registers of RFC 1321 §3.3.
    private struct State {
        private var registers = SIMD4<UInt32>(0x6745_2301, 0xefcd_ab89, 0x98ba_dcfe, 0x1032_5476)

        var value: MD5Digest {
            MD5Digest(
                high: UInt64(registers[0].byteSwapped) << 32 | UInt64(registers[1].byteSwapped),
                low: UInt64(registers[2].byteSwapped) << 32 | UInt64(registers[3].byteSwapped)
            )
        }

        /// Pads the last, incomplete block with one bit, zeros and the length (§3.1, §3.2).
        mutating func finish(with tail: UnsafeRawBufferPointer, bitCount: UInt64) {
            withUnsafeTemporaryAllocation(byteCount: 128, alignment: 8) { padded in
                padded.initializeMemory(as: UInt8.self, repeating: 0)
                padded.copyMemory(from: tail)
                padded[tail.count] = 0x80
                let length = tail.count < 56 ? 64 : 128
                padded.storeBytes(
                    of: bitCount.littleEndian,
                    toByteOffset: length - 8,
                    as: UInt64.self
                )
                for offset in stride(from: 0, to: length, by: 64) {
                    digest(block: UnsafeRawBufferPointer(rebasing: padded[offset..<offset + 64]))
                }
            }
        }

        /// One block of 64 bytes (§3.4).
        mutating func digest(block: UnsafeRawBufferPointer) {
            var (a, b, c, d) = (registers[0], registers[1], registers[2], registers[3])
            for step in 0..<64 {
                let (mix, word) = MD5.mix(step, b, c, d)
                let input = block.loadUnaligned(fromByteOffset: word * 4, as: UInt32.self)
                let sum = a &+ mix &+ MD5.sines[step] &+ UInt32(littleEndian: input)
                let shift = MD5.shifts[step >> 4 * 4 + step & 3]
                (a, b, c, d) = (d, b &+ (sum << shift | sum >> (32 - shift)), b, c)
            }
            registers &+= SIMD4(a, b, c, d)
        }
    }

    /// The auxiliary function of a step and the word of the block that it takes.
    @inline(__always)
    private static func mix(
        _ step: Int,
        _ b: UInt32,
        _ c: UInt32,
        _ d: UInt32
    ) -> (UInt32, Int) {
        switch step >> 4 {
        case 0: (d ^ (b & (c ^ d)), step)
        case 1: (c ^ (d & (b ^ c)), (5 * step + 1) & 15)
        case 2: (b ^ c ^ d, (3 * step + 5) & 15)
        default: (c ^ (b | ~d), (7 * step) & 15)
        }
    }

    /// How far the steps of each round rotate.
    private static let shifts: [UInt32] = [
        7, 12, 17, 22, 5, 9, 14, 20, 4, 11, 16, 23, 6, 10, 15, 21,
    ]

    /// 2³² · |sin(i)| for i in 1...64, rounded down (§3.4).
    private static let sines: [UInt32] = [
        0xd76a_a478, 0xe8c7_b756, 0x2420_70db, 0xc1bd_ceee, 0xf57c_0faf, 0x4787_c62a,
        0xa830_4613, 0xfd46_9501, 0x6980_98d8, 0x8b44_f7af, 0xffff_5bb1, 0x895c_d7be,
        0x6b90_1122, 0xfd98_7193, 0xa679_438e, 0x49b4_0821, 0xf61e_2562, 0xc040_b340,
        0x265e_5a51, 0xe9b6_c7aa, 0xd62f_105d, 0x0244_1453, 0xd8a1_e681, 0xe7d3_fbc8,
        0x21e1_cde6, 0xc337_07d6, 0xf4d5_0d87, 0x455a_14ed, 0xa9e3_e905, 0xfcef_a3f8,
        0x676f_02d9, 0x8d2a_4c8a, 0xfffa_3942, 0x8771_f681, 0x6d9d_6122, 0xfde5_380c,
        0xa4be_ea44, 0x4bde_cfa9, 0xf6bb_4b60, 0xbebf_bc70, 0x289b_7ec6, 0xeaa1_27fa,
        0xd4ef_3085, 0x0488_1d05, 0xd9d4_d039, 0xe6db_99e5, 0x1fa2_7cf8, 0xc4ac_5665,
        0xf429_2244, 0x432a_ff97, 0xab94_23a7, 0xfc93_a039, 0x655b_59c3, 0x8f0c_cc92,
        0xffef_f47d, 0x8584_5dd1, 0x6fa8_7e4f, 0xfe2c_e6e0, 0xa301_4314, 0x4e08_11a1,
        0xf753_7e82, 0xbd3a_f235, 0x2ad7_d2bb, 0xeb86_d391,
    ]
}
