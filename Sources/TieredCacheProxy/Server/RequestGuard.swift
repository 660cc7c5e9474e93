/// Follows the framing of the requests on one connection and refuses everything that two parsers
/// might read differently, which would allow request smuggling (RFC 9112 §11.2).
///
/// Precedes the actual parser. It checks everything that determines where a request ends, and
/// everything that the parser accepts in more than one form: hosts, codings and ends of lines.
/// Other errors are left to the parser; RequestLaws tests that both agree. Performs no I/O and
/// keeps no bytes: the caller passes the same bytes again, and more, until they are passed on.
struct RequestGuard {
    /// What to do with the first bytes.
    enum Decision: Hashable {
        /// More bytes are needed.
        case incomplete
        /// Pass on so many bytes; they may end the request.
        case pass(Int, endsRequest: Bool)
        /// Drop so many bytes: empty lines before a request.
        case drop(Int)
    }

    enum State: Hashable {
        case head  // → body, chunkSize, head
        case body(remaining: Int64)  // → head
        case chunkSize  // → chunk, trailers
        case chunk(remaining: Int64)  // → chunkEnd
        case chunkEnd  // → chunkSize
        case trailers  // → head
    }

    let limits: ServerLimits
    private(set) var state: State = .head
    /// The facts from the lines of the current head so far.
    var head = RequestHeadFacts()
    /// The number of first bytes that belong to checked lines.
    private var checked = 0
    /// The number of bytes of an unfinished line that contain no line feed.
    private var scanned = 0
    private var fieldCount = 0
    private var bodySize: Int64 = 0

    init(limits: ServerLimits) {
        self.limits = limits
    }

    /// The result of ``inspect(_:)`` as a value, for closures without typed throws.
    mutating func inspection(
        of bytes: UnsafeRawBufferPointer
    ) -> Result<Decision, RequestRefusal> {
        do throws(RequestRefusal) {
            return .success(try inspect(bytes))
        } catch {
            return .failure(error)
        }
    }

    /// Inspects the bytes that have arrived and were not passed on yet.
    ///
    /// - Parameter bytes: all of them.
    /// - Returns: what to do with the first of them.
    /// - Throws: ``RequestRefusal``; all further bytes must be dropped.
    mutating func inspect(
        _ bytes: UnsafeRawBufferPointer
    ) throws(RequestRefusal) -> Decision {
        guard !bytes.isEmpty else { return .incomplete }
        switch state {
        case .head:
            return try inspectHead(bytes)
        case .body(let remaining):
            let count = min(Int64(bytes.count), remaining)
            let isEnd = count == remaining
            state = isEnd ? .head : .body(remaining: remaining - count)
            return .pass(Int(count), endsRequest: isEnd)
        case .chunkSize:
            // Extensions are ignored (RFC 9112 §7.1.1), but not without end.
            guard let line = try nextLine(bytes, limit: 256) else { return .incomplete }
            try beginChunk(size: try ChunkSize.parse(line))
            return passChecked(endsRequest: false)
        case .chunk(let remaining):
            let count = min(Int64(bytes.count), remaining)
            state = count == remaining ? .chunkEnd : .chunk(remaining: remaining - count)
            return .pass(Int(count), endsRequest: false)
        case .chunkEnd:
            guard bytes[0] == UInt8(ascii: "\r"), bytes.count < 2 || bytes[1] == UInt8(ascii: "\n")
            else { throw .malformed("a chunk is longer than its size") }
            guard bytes.count >= 2 else { return .incomplete }
            state = .chunkSize
            return .pass(2, endsRequest: false)
        case .trailers:
            return try inspectTrailers(bytes)
        }
    }

    // MARK: Lines

    /// The next line without its end; nil if it is not complete.
    private mutating func nextLine(
        _ bytes: UnsafeRawBufferPointer,
        limit: Int
    ) throws(RequestRefusal) -> UnsafeRawBufferPointer? {
        let start = checked + scanned
        let rest = UnsafeRawBufferPointer(rebasing: bytes[start...])
        guard let length = rest.firstIndex(of: UInt8(ascii: "\n")) else {
            scanned += rest.count
            guard scanned <= limit else { throw .headTooLarge }
            return nil
        }
        let end = start + length
        // The empty line that ends the head has two bytes, however little is left of the limit.
        guard end - checked < max(limit, 2) else { throw .headTooLarge }
        guard end > checked, bytes[end - 1] == UInt8(ascii: "\r") else {
            throw .malformed("a line ends without CR")
        }
        let line = UnsafeRawBufferPointer(rebasing: bytes[checked..<end - 1])
        checked = end + 1
        scanned = 0
        return line
    }

    private mutating func passChecked(endsRequest: Bool) -> Decision {
        defer { checked = 0 }
        return .pass(checked, endsRequest: endsRequest)
    }

    // MARK: Heads

    private mutating func inspectHead(
        _ bytes: UnsafeRawBufferPointer
    ) throws(RequestRefusal) -> Decision {
        while checked < bytes.count, let line = try nextHeadLine(bytes) {
            if checked == 2 {
                // RFC 9112 §2.2: an empty line before the request line is to be ignored.
                checked = 0
                return .drop(2)
            }
            guard line.isEmpty else {
                try inspectHeadLine(line)
                continue
            }
            try head.requireComplete()
            let isEnd = try beginBody()
            head = RequestHeadFacts()
            fieldCount = 0
            return passChecked(endsRequest: isEnd)
        }
        return .incomplete
    }

    private mutating func nextHeadLine(
        _ bytes: UnsafeRawBufferPointer
    ) throws(RequestRefusal) -> UnsafeRawBufferPointer? {
        let isRequestLine = checked == 0
        do throws(RequestRefusal) {
            return try nextLine(bytes, limit: limits.maximumHeadSize - checked)
        } catch {
            // Most of a request line that long is its target.
            throw isRequestLine && error == .headTooLarge ? .targetTooLong : error
        }
    }

    private mutating func inspectHeadLine(
        _ line: UnsafeRawBufferPointer
    ) throws(RequestRefusal) {
        guard head.hasRequestLine else {
            try head.readRequestLine(line, maximumTargetSize: limits.maximumTargetSize)
            return
        }
        fieldCount += 1
        guard fieldCount <= limits.maximumFieldCount else { throw .headTooLarge }
        try head.readFieldLine(line)
    }

    /// Decides how the body is framed; true if there is none.
    private mutating func beginBody() throws(RequestRefusal) -> Bool {
        bodySize = 0
        if head.isChunked {
            state = .chunkSize
            return false
        }
        let length = head.contentLength ?? 0
        guard length <= limits.maximumBodySize else { throw .bodyTooLarge }
        state = length == 0 ? .head : .body(remaining: length)
        return length == 0
    }

    // MARK: Chunks

    private mutating func beginChunk(size: Int64) throws(RequestRefusal) {
        guard size <= limits.maximumBodySize - bodySize else { throw .bodyTooLarge }
        bodySize += size
        state = size == 0 ? .trailers : .chunk(remaining: size)
    }

    private mutating func inspectTrailers(
        _ bytes: UnsafeRawBufferPointer
    ) throws(RequestRefusal) -> Decision {
        while checked < bytes.count,
            let line = try nextLine(bytes, limit: limits.maximumHeadSize - checked)
        {
            guard line.isEmpty else {
                fieldCount += 1
                guard fieldCount <= limits.maximumFieldCount else { throw .headTooLarge }
                _ = try FieldLine(line)
                continue
            }
            fieldCount = 0
            state = .head
            return passChecked(endsRequest: true)
        }
        return .incomplete
    }
}
