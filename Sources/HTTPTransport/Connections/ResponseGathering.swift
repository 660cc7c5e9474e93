import HTTPTypes
import NIOCore

/// Gathers a small response, so that its receiver takes it at once.
///
/// A response with a body of at most 64 KiB is given whole where it comes within one read, or where
/// it says its length and comes within 20 ms. Every other one is given as its head, and as bytes as
/// they come.
struct ResponseGathering {
    /// A head, and the bytes that have come with it.
    struct Gathered {
        let head: HTTPResponse
        var body = ByteBuffer()
        /// Whether the rest may be waited for, beyond the read.
        let isShort: Bool
    }

    enum Wait: Equatable { case none, begins, goesOn }

    /// The most bytes that are gathered.
    static let maximumLength = 64 << 10
    /// How long a receiver waits for the rest of a response that has begun.
    static let patience = TimeAmount.milliseconds(20)

    private var gathered: Gathered?
    private var isWaiting = false

    mutating func begin(_ head: ResponseHead) {
        let isShort =
            switch head.framing {
            case .none: true
            case .length(let length): length <= Self.maximumLength
            case .chunked, .untilClose: false
            }
        gathered = Gathered(head: head.response, isShort: isShort)
        isWaiting = false
    }

    /// Adds a part; false if it goes to the receiver, behind what has been gathered.
    mutating func add(_ part: ByteBuffer) -> Bool {
        guard let length = gathered?.body.readableBytes,
            length + part.readableBytes <= Self.maximumLength
        else { return false }
        if length == 0 {
            gathered?.body = part
        } else {
            gathered?.body.writeImmutableBuffer(part)
        }
        return true
    }

    /// One read is over, and the response is not.
    ///
    /// - Returns: whether the rest is waited for, and has been before; the gathered goes to the
    ///   receiver otherwise.
    mutating func didCompleteRead() -> Wait {
        guard let gathered, gathered.isShort else { return .none }
        defer { isWaiting = true }
        return isWaiting ? .goesOn : .begins
    }

    /// What has been gathered; nil if that has been handed over, or there is no head.
    mutating func take() -> Gathered? {
        gathered.take()
    }
}
