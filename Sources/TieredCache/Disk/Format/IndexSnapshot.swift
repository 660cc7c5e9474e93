/// The index as it is written down when a store closes, so that the next one need not read every
/// record: a hint like the index itself (invariant 6).
///
/// One section for each directory, each with a checksum of its own. Integers are little-endian.
///
/// | offset | size | field |
/// | --- | --- | --- |
/// | 0 | 8 | magic `89 54 43 69 64 78 02 0A` (`.TCidx`, version 2, newline) |
/// | 8 | 8 | checksum: XXH3-64 of all that follows in the section |
/// | 16 | 8 | the directory's last modification, nanoseconds since 1970 |
/// | 24 | 8 | which directory it is: see ``Stamp`` |
/// | 32 | 4 | the directory's number |
/// | 36 | 4 | number of entries |
/// | 40 | 40 × n | entries: digest 16, generation 8, last use 8, record 4 and body 4, in units of 512 bytes; the upper bit of the first says whether there is a body file, those of the second are the queue |
enum IndexSnapshot {
    /// The file, below the root.
    static let name = "INDEX"
    static let headerLength = 40
    static let entryLength = 40
    /// `.TCidx`, version 2, newline, as a little-endian number.
    static let magic: UInt64 = 0x0A02_7864_6943_5489
    /// A directory changed so shortly before the snapshot was written may have been changed once
    /// more within the same tick of the file system's clock.
    ///
    /// Linux stamps files with its tick, 10 ms at HZ=100.
    static let clockGrain: Int64 = 20_000_000

    private static let bodyBits: UInt32 = 30
    private static let bodyMark: UInt32 = 1 << 31

    /// By what one of the 256 directories is known to be as it was.
    struct Stamp: Hashable, Sendable {
        /// When names came or went last.
        var modified: Int64
        /// Tells it from a copy, which may be allocated otherwise: the inode, and the time of its
        /// last change of any kind, which no copying program can set.
        var origin: UInt64

        init(modified: Int64, origin: UInt64) {
            self.modified = modified
            self.origin = origin
        }

        init(_ status: FileStatus) {
            modified = status.modified
            // The multipliers of SplitMix64; any odd ones with many bits would do.
            origin =
                status.identity &* 0xBF58_476D_1CE4_E5B9
                ^ UInt64(bitPattern: status.changed) &* 0x94D0_49BB_1331_11EB
        }
    }

    struct Header: Equatable {
        var checksum: UInt64
        var stamp: Stamp
        var shard: Int
        var count: Int

        /// The bytes of the entries.
        var length: Int { count * entryLength }
    }

    /// Whether an entry fits into a snapshot; one that does not makes its directory be read, and so
    /// does one of which only the files are known.
    static func canHold(_ slot: DiskIndex.Slot) -> Bool {
        !slot.isGuessed && slot.bodyBytes >= 0 && slot.bodyBytes / 512 < 1 << Int64(bodyBits)
            && slot.recordBytes / 512 < Int64(bodyMark)
    }

    /// A section as it stands in the file.
    static func encode(shard: Int, stamp: Stamp, _ slots: [DiskIndex.Slot]) -> [UInt8] {
        let total = headerLength + slots.count * entryLength
        return [UInt8](unsafeUninitializedCapacity: total) { buffer, count in
            count = total
            let bytes = UnsafeMutableRawBufferPointer(buffer)
            bytes.put(magic, at: 0)
            bytes.put(stamp.modified, at: 16)
            bytes.put(stamp.origin, at: 24)
            bytes.put(UInt32(truncatingIfNeeded: shard), at: 32)
            bytes.put(UInt32(truncatingIfNeeded: slots.count), at: 36)
            for (index, slot) in slots.enumerated() {
                encode(slot, into: bytes, at: headerLength + index * entryLength)
            }
            bytes.put(checksumOf(UnsafeRawBufferPointer(bytes)[16...]), at: 8)
        }
    }

    private static func encode(
        _ slot: DiskIndex.Slot,
        into bytes: UnsafeMutableRawBufferPointer,
        at offset: Int
    ) {
        bytes.put(slot.name.digest.high, at: offset)
        bytes.put(slot.name.digest.low, at: offset + 8)
        bytes.put(slot.generation, at: offset + 16)
        bytes.put(slot.lastUse, at: offset + 24)
        let record = UInt32(clamping: slot.recordBytes / 512)
        bytes.put(record | (slot.hasBody ? bodyMark : 0), at: offset + 32)
        let body = UInt32(clamping: slot.bodyBytes / 512)
        bytes.put(body | UInt32(slot.queue.rawValue) << bodyBits, at: offset + 36)
    }

    /// Reads a section's header; `nil` for what is none.
    static func header(_ bytes: UnsafeRawBufferPointer) -> Header? {
        guard bytes.count >= headerLength, bytes.get(UInt64.self, at: 0) == magic else {
            return nil
        }
        let shard = Int(bytes.get(UInt32.self, at: 32))
        guard shard < 256 else { return nil }
        return Header(
            checksum: bytes.get(UInt64.self, at: 8),
            stamp: Stamp(
                modified: bytes.get(Int64.self, at: 16),
                origin: bytes.get(UInt64.self, at: 24)
            ),
            shard: shard,
            count: Int(bytes.get(UInt32.self, at: 36))
        )
    }

    /// Reads a whole section, its header included; `nil` if it is not as it was written.
    static func slots(_ header: Header, in bytes: UnsafeRawBufferPointer) -> [DiskIndex.Slot]? {
        guard bytes.count == headerLength + header.length,
            checksumOf(bytes[16...]) == header.checksum
        else { return nil }
        var slots: [DiskIndex.Slot] = []
        slots.reserveCapacity(header.count)
        for index in 0..<header.count {
            guard let slot = slot(bytes, at: headerLength + index * entryLength),
                slot.name.shardNumber == header.shard
            else { return nil }
            slots.append(slot)
        }
        return slots
    }

    private static func slot(_ bytes: UnsafeRawBufferPointer, at offset: Int) -> DiskIndex.Slot? {
        let record = bytes.get(UInt32.self, at: offset + 32)
        let body = bytes.get(UInt32.self, at: offset + 36)
        guard let queue = DiskIndex.Queue(rawValue: UInt8(body >> bodyBits)) else { return nil }
        return DiskIndex.Slot(
            name: EntryName(
                digest: MD5Digest(
                    high: bytes.get(UInt64.self, at: offset),
                    low: bytes.get(UInt64.self, at: offset + 8)
                )
            ),
            generation: bytes.get(UInt64.self, at: offset + 16),
            recordBytes: Int64(record & (bodyMark - 1)) * 512,
            bodyBytes: Int64(body & (1 << bodyBits - 1)) * 512,
            hasBody: record & bodyMark != 0,
            lastUse: bytes.get(UInt64.self, at: offset + 24),
            queue: queue
        )
    }
}

extension IndexSnapshot {
    /// What an owner knows of the snapshot that it found.
    struct State: Sendable {
        /// Open as long as there are directories that it may know.
        private(set) var file: OpenFile?
        private(set) var isOpened = false
        /// Whether it has no name any more, so that the directory may change.
        var isConsumed = false
        /// What it is allocated once it has no name, until it is closed.
        var size: Int64 = 0

        mutating func didOpen(_ file: OpenFile?) {
            self.file = file
            isOpened = true
        }

        /// - Returns: the file, which is needed no longer.
        mutating func close() -> OpenFile? {
            defer { file = nil }
            size = 0
            return file
        }
    }
}
