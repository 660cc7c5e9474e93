import HTTPCaching

/// What the first bytes of a record file turned out to be.
enum RecordDecoding {
    /// A whole head; the table starts at ``Record/tableOffset``.
    case record(Record)
    /// The head is longer than the bytes given: that many are needed.
    case needsBytes(Int)
    /// A whole head of another key: a miss (invariant 1).
    case otherKey
    /// Not a head, or not any more.
    case damaged
}

extension Record {
    /// Reads a head from the first bytes of a file.
    ///
    /// Never traps, whatever the bytes are.
    ///
    /// - Parameters:
    ///   - bytes: the file from its start, as far as it was read.
    ///   - key: the key that is looked for; `nil` takes any.
    /// - Returns: the record, or why there is none.
    static func decode(_ bytes: UnsafeRawBufferPointer, expecting key: CacheKey?) -> RecordDecoding
    {
        guard bytes.count >= fixedLength else { return .damaged }
        guard version(of: bytes) != nil,
            bytes.get(UInt32.self, at: 28) == UInt32(BlockTable.blockSize)
        else { return .damaged }
        let keyLength = Int(bytes.get(UInt32.self, at: 56))
        let metadataLength = Int(bytes.get(UInt32.self, at: 60))
        guard keyLength <= maximumFieldLength, metadataLength <= maximumFieldLength else {
            return .damaged
        }
        let headEnd = fixedLength + keyLength + metadataLength
        guard bytes.count >= headEnd else { return .needsBytes(headEnd) }
        guard checksumOf(bytes[24..<headEnd]) == bytes.get(UInt64.self, at: 8) else {
            return .damaged
        }
        let keyBytes = bytes[fixedLength..<(fixedLength + keyLength)]
        return decodeVariable(
            bytes,
            key: keyBytes,
            metadata: bytes[(fixedLength + keyLength)..<headEnd],
            expected: key
        )
    }

    private static func decodeVariable(
        _ bytes: UnsafeRawBufferPointer,
        key keyBytes: Slice<UnsafeRawBufferPointer>,
        metadata: Slice<UnsafeRawBufferPointer>,
        expected: CacheKey?
    ) -> RecordDecoding {
        guard let key = matchKey(keyBytes, expected: expected) else { return .damaged }
        guard expected == nil || key.isExpected else { return .otherKey }
        let length = bytes.get(Int64.self, at: 40)
        // Sums with offsets of a body are not checked any more.
        guard (-1...BlockTable.maximumLength).contains(length), let version = version(of: bytes)
        else { return .damaged }
        let created = WallTime(nanoseconds: bytes.get(Int64.self, at: 48))
        return .record(
            Record(
                key: key.key,
                metadata: Array(metadata),
                generation: bytes.get(UInt64.self, at: 32),
                completeLength: length < 0 ? nil : length,
                created: created,
                flags: Flags(rawValue: bytes.get(UInt32.self, at: 24)),
                lastUse: lastUse(
                    bytes.get(UInt64.self, at: Int(lastUseOffset)),
                    version: version,
                    created: created
                ),
                version: version
            )
        )
    }

    /// The format version that the first bytes name; `nil` if they are not a record's.
    static func version(of bytes: UnsafeRawBufferPointer) -> Int? {
        switch bytes.get(UInt64.self, at: 0) {
        case magic: 2
        case magicOfVersion1: 1
        default: nil
        }
    }

    /// In nanoseconds, whatever the version; a word that cannot be a time is one far away.
    ///
    /// Version 1 wrote the second of its making for what was never used.
    private static func lastUse(_ word: UInt64, version: Int, created: WallTime) -> UInt64 {
        guard version == 1 else { return word }
        if word == UInt64(clamping: created.seconds) { return 0 }
        let (nanoseconds, overflow) = word.multipliedReportingOverflow(by: 1_000_000_000)
        return overflow ? .max : nanoseconds
    }

    /// The expected key where the bytes are its, so that a hit makes no string.
    private static func matchKey(
        _ bytes: Slice<UnsafeRawBufferPointer>,
        expected: CacheKey?
    ) -> (key: CacheKey, isExpected: Bool)? {
        if let expected, expected.string.utf8.elementsEqualFast(bytes) {
            return (expected, true)
        }
        guard let string = String(validating: bytes, as: UTF8.self) else { return nil }
        return (CacheKey(stored: string), false)
    }

    /// The checksums of the table that starts at `bytes`; what the file does not hold is not
    /// stored.
    static func decodeTable(_ bytes: UnsafeRawBufferPointer, blocks: Int) -> [UInt64] {
        let count = min(blocks, bytes.count / 8)
        return (0..<max(0, count)).map { bytes.get(UInt64.self, at: 8 * $0) }
    }
}

extension UnsafeRawBufferPointer {
    @inline(__always)
    func get<Value: FixedWidthInteger & BitwiseCopyable>(
        _ type: Value.Type,
        at offset: Int
    ) -> Value {
        Value(littleEndian: loadUnaligned(fromByteOffset: offset, as: type))
    }
}

extension String.UTF8View {
    fileprivate func elementsEqualFast(_ bytes: Slice<UnsafeRawBufferPointer>) -> Bool {
        withContiguousStorageIfAvailable { own in
            own.count == bytes.count && own.elementsEqual(bytes)
        } ?? elementsEqual(bytes)
    }
}
