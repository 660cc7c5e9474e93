import HTTPTypes

/// Everything about one answer, decided before its first byte is written.
struct OriginAnswer: Sendable {
    /// What is written, in this order.
    enum Step: Sendable {
        case sleep(Duration)
        case wait(OriginGate)
        case stall
        case changeVersion
        /// The final head; counts as the answer's status from here on.
        case head([UInt8])
        /// Bytes outside any accounting: interim heads, garbage, the end of a chunked body.
        case raw([UInt8])
        /// Bytes of the source, throttled and counted.
        case body(Range<Int64>)
        case cut(OriginBehaviour.Cut)
    }

    /// What goes into `Date`, unless the resource has its own.
    var date: String
    var status: Int?
    var steps: [Step] = []
    var source = OriginBodySource.bytes([])
    var isChunked = false
    var bytesPerSecond: Int?
    var closesConnection = false
}

/// Where the bytes of one answer come from; keeps one version whatever the resource becomes.
enum OriginBodySource: Sendable {
    case generated(GeneratedBody)
    case bytes([UInt8])

    var length: Int64 {
        switch self {
        case .generated(let body): body.length
        case .bytes(let bytes): Int64(bytes.count)
        }
    }

    func fill(_ buffer: UnsafeMutableRawBufferPointer, from offset: Int64) {
        switch self {
        case .generated(let body):
            body.fill(buffer, from: offset)
        case .bytes(let bytes):
            let start = Int(offset)
            buffer.copyBytes(from: bytes[start..<start + buffer.count])
        }
    }
}
