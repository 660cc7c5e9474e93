package import HTTPTypes
package import NIOCore

/// Reads the responses of one connection from its bytes (RFC 9112), each to its own request.
///
/// Pure: bytes in, events out; docs/transport.md says what is taken and what is refused. A body is
/// not copied. After an error nothing more can be read.
package struct ResponseParser: Sendable {
    /// What has been read.
    package enum Event: Sendable {
        case head(ResponseHead)
        /// At least one byte of the body.
        case body(ByteBuffer)
        /// The end of the response. Bytes that follow are an error.
        case end
    }

    /// How a response ends when its connection does.
    package enum Close: Sendable {
        /// It is complete: its body ends with the connection.
        case end
        /// It is cut.
        case cut
        /// There was none.
        case idle
    }

    /// The most interim responses to one request; a peer that sends more is hostile.
    package static let maximumInterims = 64
    /// The most bytes of a head.
    package static let maximumHead = 256 << 10

    private enum Phase {
        /// Nothing has been asked for.
        case idle
        case head(isBodyless: Bool)
        case fixed(left: Int64)
        case untilClose
        case chunks(ChunkParser)
        case ending
    }

    private var phase = Phase.idle
    private var bytes = ByteBuffer()
    /// How many bytes of an incomplete head have no end of it.
    private var searched = 0
    /// How many interim responses there were to this request.
    private var interims = 0

    package init() {}

    /// A response is due.
    ///
    /// - Parameter method: that of the request, which may allow no body.
    package mutating func begin(_ method: HTTPRequest.Method) {
        phase = .head(isBodyless: method == .head)
        interims = 0
    }

    /// Adds bytes, which ``next()`` reads.
    package mutating func add(_ more: ByteBuffer) {
        if bytes.readableBytes == 0 {
            bytes = more
        } else {
            bytes.writeImmutableBuffer(more)
        }
    }

    /// Reads on.
    ///
    /// - Returns: the next event; nil where more bytes are needed.
    package mutating func next() throws(ResponseSyntaxError) -> Event? {
        switch phase {
        case .idle:
            guard bytes.readableBytes == 0 else { throw .unasked }
            return nil
        case .head(let isBodyless):
            return try readHead(isBodyless: isBodyless).map { .head($0) }
        case .fixed(let left):
            guard left > 0 else { return end() }
            guard let part = bytes.readPrefix(left) else { return nil }
            phase = .fixed(left: left - Int64(part.readableBytes))
            return .body(part)
        case .untilClose:
            return bytes.readPrefix(.max).map { .body($0) }
        case .chunks(var chunks):
            defer { if case .chunks = phase { phase = .chunks(chunks) } }
            switch try chunks.read(&bytes) {
            case .part(let part): return .body(part)
            case .end:
                return end()
            case nil: return nil
            }
        case .ending:
            return end()
        }
    }

    /// The connection was closed; every byte has been read before.
    package mutating func close() -> Close {
        defer { phase = .idle }
        switch phase {
        case .idle: return .idle
        case .untilClose: return .end
        case .head, .fixed, .chunks, .ending: return .cut
        }
    }

    private mutating func end() -> Event {
        phase = .idle
        // An idle connection must not keep the buffer of its last read.
        if bytes.readableBytes == 0 { bytes = ByteBuffer() }
        return .end
    }

    // MARK: The head

    private mutating func readHead(
        isBodyless: Bool
    ) throws(ResponseSyntaxError) -> ResponseHead? {
        if searched == 0 { bytes.skipEmptyLines() }
        guard let length = try headLength() else { return nil }
        let head = try bytes.withUnsafeReadableBytes {
            bytes throws(ResponseSyntaxError) in
            try HeadParser.parse(
                UnsafeRawBufferPointer(rebasing: bytes[..<length]),
                isBodyless: isBodyless
            )
        }
        bytes.moveReaderIndex(forwardBy: length)
        searched = 0
        guard !head.isInterim else {
            interims += 1
            guard interims <= Self.maximumInterims else { throw .tooManyInterims }
            return head
        }
        phase =
            switch head.framing {
            case .none: .ending
            case .length(let length): .fixed(left: length)
            case .chunked: .chunks(ChunkParser())
            case .untilClose: .untilClose
            }
        return head
    }

    /// The length of the head with its empty line; nil if that has not come.
    private mutating func headLength() throws(ResponseSyntaxError) -> Int? {
        let start = searched
        let found = bytes.withUnsafeReadableBytes { bytes -> Int? in
            var from = start
            while let end = bytes.firstLineFeed(from: from) {
                from = end + 1
                if from < bytes.count, bytes[from] == .lineFeed { return from + 1 }
                if from + 1 < bytes.count, bytes[from] == .carriageReturn,
                    bytes[from + 1] == .lineFeed
                {
                    return from + 2
                }
            }
            return nil
        }
        guard let length = found else {
            guard bytes.readableBytes <= Self.maximumHead else { throw .headTooLong }
            // What is no HTTP, and waits to be spoken to, has no end of a head.
            guard bytes.mayBeginHead else { throw .noStatusLine }
            // The last three may be the beginning of the end.
            searched = max(0, bytes.readableBytes - 3)
            return nil
        }
        guard length <= Self.maximumHead else { throw .headTooLong }
        return length
    }
}

extension ByteBuffer {
    /// Takes at most so many bytes, without a copy; nil if there are none.
    mutating func readPrefix(_ maximum: Int64) -> ByteBuffer? {
        let length = Int(min(maximum, Int64(readableBytes)))
        return length == 0 ? nil : readSlice(length: length)
    }

    /// Whether a status line can begin with the bytes.
    fileprivate var mayBeginHead: Bool {
        let view = readableBytesView
        return ["HTTP/1.", "ICY "].contains { start in
            zip(view, start.utf8).allSatisfy { $0 == $1 }
        }
    }

    /// Empty lines before a status line are ignored, as they are before a request (RFC 9112 §2.2).
    fileprivate mutating func skipEmptyLines() {
        let view = readableBytesView
        let count = view.prefix { $0 == .carriageReturn || $0 == .lineFeed }.count
        moveReaderIndex(forwardBy: count)
    }
}
