import SystemPackage

/// Reads the frames of a journal in their order, whatever its bytes are.
///
/// What is damaged is left out: the next frame is looked for behind it.
struct JournalScan {
    private static let window = 1 << 20

    private let file: FileDescriptor
    private let size: Int64
    private var buffer: [UInt8] = []
    /// The offset of the first byte of the buffer.
    private var base: Int64 = 0
    /// Where the next frame may begin.
    private var offset: Int64
    /// Where the last sound frame ended.
    private(set) var end: Int64
    /// Whether bytes before ``end`` were left out.
    private(set) var isDamaged = false

    init(_ file: FileDescriptor, from offset: Int64, size: Int64) {
        self.file = file
        self.size = size
        self.offset = offset
        end = offset
    }

    /// The next sound frame with its place; nil at the end.
    mutating func next() throws -> (frame: JournalFrame, place: Range<Int64>)? {
        while offset < size {
            if let found = try frame() {
                if found.place.lowerBound != end { isDamaged = true }
                (offset, end) = (found.place.upperBound, found.place.upperBound)
                return found
            }
            offset += 1
            try skipToMagic()
        }
        return nil
    }

    private mutating func frame() throws -> (frame: JournalFrame, place: Range<Int64>)? {
        let head = try bytes(JournalFrame.headerSize)
        guard let length = JournalFrame.length(at: head) else { return nil }
        guard let frame = JournalFrame(try bytes(length)) else { return nil }
        return (frame, offset..<offset + Int64(length))
    }

    private mutating func skipToMagic() throws {
        while offset < size {
            let rest = try bytes(Self.window)
            if let found = rest.firstIndex(of: JournalFrame.magic[0]) {
                offset += Int64(found - rest.startIndex)
                return
            }
            offset += Int64(rest.count)
        }
    }

    /// As many bytes from the offset on, or all there are.
    private mutating func bytes(_ count: Int) throws -> ArraySlice<UInt8> {
        let wanted = min(Int64(count), size - offset)
        if offset < base || offset + wanted > base + Int64(buffer.count) {
            try fill(Int(wanted))
        }
        let start = Int(offset - base)
        return buffer[start..<min(start + Int(wanted), buffer.count)]
    }

    private mutating func fill(_ count: Int) throws {
        let length = Int(min(Int64(max(count, Self.window)), size - offset))
        base = offset
        buffer = [UInt8](unsafeUninitializedCapacity: length) { buffer, initialized in
            let raw = UnsafeMutableRawBufferPointer(buffer)
            raw.initializeMemory(as: UInt8.self, repeating: 0)
            initialized = length
        }
        var have = 0
        while have < length {
            let got = try buffer.withUnsafeMutableBytes { bytes in
                try file.read(
                    fromAbsoluteOffset: base + Int64(have),
                    into: UnsafeMutableRawBufferPointer(rebasing: bytes[have...])
                )
            }
            guard got > 0 else { break }
            have += got
        }
    }
}
