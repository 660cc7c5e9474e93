import NIOCore

/// Reads a body that comes in chunks (RFC 9112 §7.1); extensions and trailers are dropped.
struct ChunkParser: Sendable {
    enum Event {
        case part(ByteBuffer)
        case end
    }

    private enum Phase {
        case size(Size)
        case data(left: Int64)
        /// The end of the line behind a chunk, perhaps after its CR.
        case dataEnd(afterCR: Bool)
        case trailer(lineLength: Int, afterCR: Bool)
    }

    /// A line with a size, of which a part has come.
    private struct Size {
        /// Nil before the first digit.
        var value: Int64?
        var place = Place.digits
        var length = 0

        enum Place { case digits, spaces, ext, afterCR }
    }

    /// The most bytes of a line with a size and its extensions.
    static let maximumSizeLine = 4 << 10
    /// The most bytes of all trailers.
    static let maximumTrailers = 64 << 10

    private var phase = Phase.size(Size())
    private var trailers = 0

    /// Reads on; nil where more bytes are needed.
    mutating func read(_ bytes: inout ByteBuffer) throws(ResponseSyntaxError) -> Event? {
        while true {
            if case .data(let left) = phase {
                guard let part = bytes.readPrefix(left) else { return nil }
                let still = left - Int64(part.readableBytes)
                phase = still > 0 ? .data(left: still) : .dataEnd(afterCR: false)
                return .part(part)
            }
            guard let byte = bytes.readInteger(as: UInt8.self) else { return nil }
            switch phase {
            case .data: break
            case .size(let size): try readSize(size, byte)
            case .dataEnd(let afterCR):
                if byte == .lineFeed {
                    phase = .size(Size())
                } else {
                    guard byte == .carriageReturn, !afterCR else { throw .chunkTooLong }
                    phase = .dataEnd(afterCR: true)
                }
            case .trailer(let length, let afterCR):
                if try endsTrailers(byte, length: length, afterCR: afterCR) { return .end }
            }
        }
    }

    private mutating func readSize(_ old: Size, _ byte: UInt8) throws(ResponseSyntaxError) {
        var size = old
        size.length += 1
        guard size.length <= Self.maximumSizeLine else { throw .invalidChunk }
        switch (size.place, byte) {
        case (_, .lineFeed):
            guard let value = size.value else { throw .invalidChunk }
            phase = value == 0 ? .trailer(lineLength: 0, afterCR: false) : .data(left: value)
            return
        case (.afterCR, _):
            // A bare CR: others might see a line's end where we do not.
            throw .invalidChunk
        case (_, .carriageReturn): size.place = .afterCR
        case (.ext, 0): throw .invalidChunk
        case (.ext, _): break
        case (_, UInt8(ascii: ";")) where size.value != nil:
            size.place = .ext
        case (_, .space) where size.value != nil, (_, .tab) where size.value != nil:
            size.place = .spaces
        case (.digits, _):
            guard let digit = byte.hexadecimal, size.value ?? 0 < Int64.max >> 4 else {
                throw .invalidChunk
            }
            size.value = (size.value ?? 0) << 4 | digit
        case (.spaces, _): throw .invalidChunk
        }
        phase = .size(size)
    }

    /// - Returns: whether the empty line behind the trailers is complete.
    private mutating func endsTrailers(
        _ byte: UInt8,
        length: Int,
        afterCR: Bool
    ) throws(ResponseSyntaxError) -> Bool {
        trailers += 1
        guard trailers <= Self.maximumTrailers else { throw .trailersTooLong }
        if byte == .lineFeed {
            guard length > 0 else { return true }
            phase = .trailer(lineLength: 0, afterCR: false)
            return false
        }
        guard !afterCR, byte != 0 else { throw .controlCharacter }
        let isCR = byte == .carriageReturn
        phase = .trailer(lineLength: isCR ? length : length + 1, afterCR: isCR)
        return false
    }
}

extension UInt8 {
    /// What a hexadecimal digit stands for.
    fileprivate var hexadecimal: Int64? {
        switch self {
        case UInt8(ascii: "0")...UInt8(ascii: "9"): Int64(self - .zero)
        case UInt8(ascii: "a")...UInt8(ascii: "f"): Int64(self - UInt8(ascii: "a")) + 10
        case UInt8(ascii: "A")...UInt8(ascii: "F"): Int64(self - UInt8(ascii: "A")) + 10
        default: nil
        }
    }
}
