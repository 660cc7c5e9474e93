// Feeds the decoders of everything that is read back from the directory with libFuzzer's inputs.
//
// What the disk returns is hostile: a decoder may refuse it or make a value of it, but never trap
// and never take more memory than the input is long. libFuzzer learns from the branches that an
// input reaches, which the seeded mutator of the tests cannot.

@testable import HTTPCaching
@testable import TieredCache

/// What libFuzzer calls for each input.
///
/// - Returns: 0, always: a finding is a trap.
@c(LLVMFuzzerTestOneInput)
public func fuzzOne(_ data: UnsafePointer<UInt8>?, _ count: Int) -> CInt {
    guard let data, count > 0 else { return 0 }
    let input = Array(UnsafeBufferPointer(start: data, count: count))
    decodeRecord(input)
    decodeRecord(sealed(input))
    _ = JobRecord(encoded: input)
    _ = StatisticsRecord.decode(input)
    _ = StoredResponse(encoded: input)
    return 0
}

/// Decodes a record and checks what was promised about one that is accepted.
private func decodeRecord(_ bytes: [UInt8]) {
    bytes.withUnsafeBytes { bytes in
        guard case .record(let record) = Record.decode(bytes, expecting: nil) else { return }
        precondition(record.tableOffset >= Record.fixedLength)
        precondition(record.metadata.count <= bytes.count)
        precondition((record.completeLength ?? 0) >= 0)
    }
}

/// The input with the magic, the lengths and the checksum of a record, so that what lies behind
/// them is reached: no fuzzer guesses a checksum.
private func sealed(_ input: [UInt8]) -> [UInt8] {
    guard input.count >= Record.fixedLength else { return input }
    var bytes = input
    let magic: [UInt8] = [0x89, 0x54, 0x43, 0x72, 0x65, 0x63, 0x02, 0x0A]
    bytes.replaceSubrange(0..<magic.count, with: magic)
    let variable = bytes.count - Record.fixedLength
    let keyLength = Int(bytes[56]) % (variable + 1)
    let metadataLength = Int(bytes[60]) % (variable - keyLength + 1)
    let end = Record.fixedLength + keyLength + metadataLength
    bytes.withUnsafeMutableBytes { bytes in
        bytes.storeBytes(
            of: UInt32(BlockTable.blockSize).littleEndian,
            toByteOffset: 28,
            as: UInt32.self
        )
        bytes.storeBytes(of: UInt32(keyLength).littleEndian, toByteOffset: 56, as: UInt32.self)
        bytes.storeBytes(of: UInt32(metadataLength).littleEndian, toByteOffset: 60, as: UInt32.self)
        let checksum = checksumOf(UnsafeRawBufferPointer(bytes)[24..<end])
        bytes.storeBytes(of: checksum.littleEndian, toByteOffset: 8, as: UInt64.self)
    }
    return bytes
}
