public import HTTPTypes

/// Sends one request and brings one response: one hop, no redirects, no decoding, no retry.
///
/// The engine owns those, so that it can decide about them. A transport only
/// moves bytes, and only as fast as they are pulled.
public protocol Transport: Sendable {
    /// Sends `request` and returns when the final response's head has arrived.
    ///
    /// Cancelling the task closes the exchange; the call then throws promptly.
    ///
    /// - Throws: ``TransportError``. Nothing of the exchange is left open then.
    func send(_ request: TransportRequest) async throws(TransportError) -> TransportResponse

    /// Closes idle connections and refuses new requests; exchanges under way are cancelled.
    func shutdown() async
}

/// A transport that calls ``TransportRequest/onStart`` for each request that it sends.
///
/// What watches an exchange can end it then without a task of its own around it. An exchange that
/// is ended so fails as one that was cancelled.
package protocol CancellableTransport: Transport {}

/// A request for one hop.
public struct TransportRequest: Sendable {
    /// Method, scheme, authority, path and fields, complete as they go on the wire.
    public var head: HTTPRequest
    /// The body, or nil for none or for one that is streamed; small by nature (a query).
    public var body: [UInt8]?
    /// A body that is pulled while it is sent, in place of ``body``; it can be sent once only.
    public var upload: UploadBody?
    /// Told of each interim response (1xx but 101) before the head, on a thread that must not wait.
    public var onInterim: (@Sendable (HTTPResponse) -> Void)?
    /// How long to wait for a connection, by default 10 s.
    public var connectTimeout: Duration
    /// Given the means to end the exchange, to be used on any thread, before the exchange begins;
    /// see ``CancellableTransport``.
    package var onStart: (@Sendable (_ cancel: @escaping @Sendable () -> Void) -> Void)?

    /// Creates a request.
    public init(
        head: HTTPRequest,
        body: [UInt8]? = nil,
        upload: UploadBody? = nil,
        connectTimeout: Duration = .seconds(10)
    ) {
        self.head = head
        self.body = body
        self.upload = upload
        self.connectTimeout = connectTimeout
    }
}

/// The response of one hop: its head, and its body still in the socket.
public struct TransportResponse: Sendable {
    /// Status and fields as received.
    public var head: HTTPResponse
    /// The body, to be pulled.
    public var body: any TransportBody
    /// The address of this machine that the exchange uses, such as `192.0.2.1`; nil if unknown.
    ///
    /// When the machine loses it, the exchange is ended at once; one whose address is not known is
    /// ended with any.
    public var localAddress: String?

    /// Creates a response.
    public init(head: HTTPResponse, body: any TransportBody, localAddress: String? = nil) {
        self.head = head
        self.body = body
        self.localAddress = localAddress
    }
}

/// A response body that is pulled piece by piece; what is not pulled stays in the socket.
///
/// One consumer at a time. Dropping the last reference, or ``cancel()``, closes the exchange.
public protocol TransportBody: AnyObject, Sendable {
    /// Waits for the next bytes.
    ///
    /// A chunk has at least one byte and at most 1 MiB (usually 64 KiB or less).
    ///
    /// - Returns: the bytes, or nil at the end of a completely framed body (RFC 9112 §8). A body
    ///   that is framed by the close of the connection also ends with nil. Nil says that every
    ///   byte was returned before; after a cancel that gave some up, this throws.
    /// - Throws: ``TransportError``; also when the body ended before its framing was satisfied.
    func next() async throws(TransportError) -> BodyChunk?

    /// Whether ``next()`` returns at once; false where that is not known, which costs time alone.
    var isNextAtHand: Bool { get }

    /// Closes the exchange now. May be called from any thread, any number of times.
    func cancel()
}

extension TransportBody {
    /// False: it is not known.
    public var isNextAtHand: Bool { false }
}

/// Why an exchange failed, as far as the engine needs to know to decide what to do next.
public struct TransportError: Error, Hashable, Sendable, CustomStringConvertible {
    /// The kinds of failure.
    public enum Kind: String, Hashable, Sendable {
        /// The name did not resolve, for now or for good.
        case nameResolution
        /// No connection: refused, unreachable, or no answer within the connect timeout.
        case connect
        /// The certificate was not accepted, or TLS could not be agreed upon.
        case tls
        /// The connection closed before the response was complete.
        case closedEarly
        /// The peer sent something that is not HTTP.
        case malformedResponse
        /// The task was cancelled, or the body was.
        case cancelled
        /// The transport was shut down.
        case shutDown
        /// The request cannot be expressed on the wire.
        case invalidRequest
    }

    /// The kind of failure.
    public let kind: Kind
    /// The underlying library's words, for people.
    public let description: String
    /// Whether the peer took too long, rather than refused.
    public let isTimeout: Bool

    /// Creates an error.
    public init(_ kind: Kind, _ description: String, isTimeout: Bool = false) {
        self.kind = kind
        self.description = description
        self.isTimeout = isTimeout
    }
}
