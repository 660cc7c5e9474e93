import HTTPTypes

/// The plan of one response, made before its first byte is written.
struct OriginResponse: Sendable {
    /// The steps of a response.
    enum Step: Sendable {
        case sleep(Duration)
        case wait(OriginGate)
        case stall
        case changeVersion
        /// The final head; the log shows its status from this step on.
        case head([UInt8])
        /// Bytes that are not counted: interim heads, garbage, the end of a chunked body.
        case raw([UInt8])
        /// Bytes of the source, throttled and counted.
        case body(Range<Int64>)
        case cut(OriginBehaviour.Cut)
    }

    /// The value of `Date`, unless the resource has its own.
    var date: String
    var status: Int?
    var steps: [Step] = []
    var source = OriginBodySource.bytes([])
    var isChunked = false
    var bytesPerSecond: Int?
    var closesConnection = false
}

/// The body of one response; unaffected by later changes of the resource.
enum OriginBodySource: Sendable {
    case generated(GeneratedBody)
    case bytes([UInt8])
    case padded([UInt8], zeros: Int64, [UInt8])

    var length: Int64 {
        switch self {
        case .generated(let body): body.length
        case .bytes(let bytes): Int64(bytes.count)
        case .padded(let head, let zeros, let tail): Int64(head.count) + zeros + Int64(tail.count)
        }
    }

    func fill(_ buffer: UnsafeMutableRawBufferPointer, from offset: Int64) {
        switch self {
        case .generated(let body):
            body.fill(buffer, from: offset)
        case .bytes(let bytes):
            let start = Int(offset)
            buffer.copyBytes(from: bytes[start..<start + buffer.count])
        case .padded(let head, let zeros, let tail):
            let range = offset..<offset + Int64(buffer.count)
            buffer.initializeMemory(as: UInt8.self, repeating: 0)
            Self.copy(head, at: 0, to: buffer, in: range)
            Self.copy(tail, at: Int64(head.count) + zeros, to: buffer, in: range)
        }
    }

    /// Copies the part of `bytes`, which begin at `offset`, that lies in `range`.
    private static func copy(
        _ bytes: [UInt8],
        at offset: Int64,
        to buffer: UnsafeMutableRawBufferPointer,
        in range: Range<Int64>
    ) {
        let common = range.clamped(to: offset..<offset + Int64(bytes.count))
        guard !common.isEmpty else { return }
        let target = UnsafeMutableRawBufferPointer(
            rebasing: buffer[Int(common.lowerBound - range.lowerBound)...]
        )
        let start = Int(common.lowerBound - offset)
        target.copyBytes(from: bytes[start..<start + common.count])
    }
}
