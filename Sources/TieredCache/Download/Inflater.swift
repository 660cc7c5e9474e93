import CZlib

/// Decodes gzip and deflate as bytes arrive; memory is bounded by one piece of output.
final class Inflater {
    struct InvalidData: Error {}

    /// The maximum number of bytes that ``next()`` returns at once.
    static let pieceSize = 64 << 10

    private let coding: ContentCoding
    private let stream: UnsafeMutablePointer<z_stream>
    private var input: [UInt8] = []
    private var consumed = 0
    private var isStarted = false
    /// The end of a member was reached; only further members may follow.
    private var isAtEnd = false
    /// The output was full: more may follow without further input.
    private var mayHaveMore = false

    init(_ coding: ContentCoding) {
        self.coding = coding
        // On the heap: zlib keeps the address of the stream and compares it (`inflateStateCheck`),
        // so that it must not move.
        stream = .allocate(capacity: 1)
        stream.initialize(to: z_stream())
    }

    deinit {
        if isStarted { inflateEnd(stream) }
        stream.deallocate()
    }

    /// Whether the data ended as its format says; true without any data.
    var isComplete: Bool { !isStarted || isAtEnd }

    /// Supplies coded bytes; all output of earlier ones must have been taken.
    func supply(_ chunk: BodyChunk) {
        // Moves what zlib has left, a few bytes: it consumes its input unless the output is full.
        input.removeFirst(consumed)
        consumed = 0
        chunk.withUnsafeBytes { input.append(contentsOf: $0) }
    }

    /// The next piece of output, or nil if more input is needed.
    func next() throws(InvalidData) -> [UInt8]? {
        while consumed < input.count || mayHaveMore {
            try prepare()
            guard !isAtEnd else {
                // Bytes after the end that start no further member: padding, which gzip allows.
                consumed = input.count
                return nil
            }
            let piece = try inflatePiece()
            if !piece.isEmpty { return piece }
        }
        return nil
    }

    private func prepare() throws(InvalidData) {
        if !isStarted {
            guard inflateInit2_(stream, windowBits(), ZLIB_VERSION, streamSize) == Z_OK else {
                throw InvalidData()
            }
            isStarted = true
        } else if isAtEnd, coding == .gzip, consumed < input.count, input[consumed] == 0x1F {
            // RFC 1952 §2.2: members may follow each other, each beginning with 1F 8B.
            guard inflateReset(stream) == Z_OK else { throw InvalidData() }
            isAtEnd = false
        }
    }

    private var streamSize: Int32 { Int32(MemoryLayout<z_stream>.size) }

    /// 15 is the largest window; 16 more means gzip, a negative number means no header at all.
    private func windowBits() -> Int32 {
        guard coding == .deflate else { return 15 + 16 }
        let first = Int(input[consumed])
        let second = consumed + 1 < input.count ? Int(input[consumed + 1]) : nil
        // RFC 1950 §2.2: method 8, and both bytes together a multiple of 31.
        let isZlib = first & 0xF == 8 && second.map { (first << 8 | $0) % 31 == 0 } ?? true
        return isZlib ? 15 : -15
    }

    private func inflatePiece() throws(InvalidData) -> [UInt8] {
        var status = Z_OK
        let piece = [UInt8](unsafeUninitializedCapacity: Self.pieceSize) { output, count in
            input.withUnsafeMutableBufferPointer { input in
                stream.pointee.next_in = input.baseAddress?.advanced(by: consumed)
                stream.pointee.avail_in = UInt32(input.count - consumed)
                stream.pointee.next_out = output.baseAddress
                stream.pointee.avail_out = UInt32(Self.pieceSize)
                status = inflate(stream, Z_NO_FLUSH)
                consumed = input.count - Int(stream.pointee.avail_in)
                count = Self.pieceSize - Int(stream.pointee.avail_out)
            }
        }
        switch status {
        // Z_BUF_ERROR is no error: there was nothing to do without more input (zlib.h).
        case Z_OK, Z_BUF_ERROR: mayHaveMore = piece.count == Self.pieceSize
        case Z_STREAM_END:
            isAtEnd = true
            mayHaveMore = false
        default: throw InvalidData()
        }
        return piece
    }
}
