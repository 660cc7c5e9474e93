public import HTTPTypes
public import TieredCache

/// What a scripted exchange does: a head and the steps of its body, or a failure.
public struct ScriptedResponse: Sendable {
    /// One thing that happens while the body is pulled.
    public enum Step: Sendable {
        /// These bytes arrive as one chunk.
        case bytes([UInt8])
        /// Nothing happens for so long, by the transport's time source.
        case delay(Duration)
        /// Nothing happens any more until the exchange is cancelled.
        case stall
        /// The exchange fails.
        case fail(TransportError)
    }

    /// The head, or the failure that comes instead.
    public var head: Result<HTTPResponse, TransportError>
    /// How long the head takes.
    public var headDelay: Duration
    /// Whether no head ever comes.
    public var stallsBeforeHead: Bool
    /// The body; after the last step it ends as its framing promised.
    public var steps: [Step]

    /// A response.
    ///
    /// - Parameters:
    ///   - status: The status code.
    ///   - fields: The header fields, sent as they are: no length is added.
    ///   - steps: The body.
    public init(status: Int, fields: HTTPFields = [:], steps: [Step] = []) {
        head = .success(HTTPResponse(status: .init(code: status), headerFields: fields))
        headDelay = .zero
        stallsBeforeHead = false
        self.steps = steps
    }

    /// A failure in place of a response.
    public init(failure: TransportError.Kind) {
        head = .failure(TransportError(failure, "scripted"))
        headDelay = .zero
        stallsBeforeHead = false
        steps = []
    }

    /// A response that never comes.
    public static var silence: ScriptedResponse {
        var response = ScriptedResponse(status: 200)
        response.stallsBeforeHead = true
        return response
    }
}
