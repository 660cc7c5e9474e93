public import HTTPTypes
public import TieredCache

/// A scripted exchange: a head and the steps of its body, or a failure.
public struct ScriptedResponse: Sendable {
    /// A step while the body is pulled.
    public enum Step: Sendable {
        /// These bytes arrive as one chunk.
        case bytes([UInt8])
        /// Nothing happens for a duration, by the transport's time source.
        case delay(Duration)
        /// Nothing happens until the exchange is cancelled.
        case stall
        /// The exchange fails.
        case fail(TransportError)
    }

    /// The head, or the failure instead of one.
    public var head: Result<HTTPResponse, TransportError>
    /// The delay of the head.
    public var headDelay: Duration
    /// Whether the head never arrives.
    public var stallsBeforeHead: Bool
    /// The steps of the body; after the last one the body ends regularly.
    public var steps: [Step]

    /// Whether a body of one step comes with the head; it then is not pulled.
    package var comesWhole = false

    /// Creates a response.
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

    /// Creates a failure.
    public init(failure: TransportError.Kind) {
        self.init(error: TransportError(failure, "scripted"))
    }

    /// Creates a failure.
    package init(error: TransportError) {
        head = .failure(error)
        headDelay = .zero
        stallsBeforeHead = false
        steps = []
    }

    /// A response that never arrives.
    public static var silence: ScriptedResponse {
        var response = ScriptedResponse(status: 200)
        response.stallsBeforeHead = true
        return response
    }
}
