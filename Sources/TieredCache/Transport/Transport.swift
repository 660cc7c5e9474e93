public import FoundationEssentials
public import HTTPTypes

/// Sends one request and returns one response: one hop, no redirects, no decoding, no retry.
///
/// The engine decides about those. A transport only moves bytes, and only as fast as they are read.
public protocol Transport: Sendable {
    /// Sends `request` and returns when the final response's head has arrived.
    ///
    /// Cancelling the task closes the exchange; the call then throws promptly.
    ///
    /// - Throws: ``TransportError``. No resources of the exchange stay open then.
    func send(_ request: TransportRequest) async throws(TransportError) -> TransportResponse

    /// Closes idle connections and refuses new requests; running exchanges are cancelled.
    func shutdown() async
}

/// A transport that calls ``TransportRequest/onStart`` for each request that it sends.
///
/// The engine can then end an exchange without a task of its own around it. Such an exchange fails
/// like a cancelled one.
package protocol CancellableTransport: Transport {}

/// A request for one hop.
public struct TransportRequest: Sendable {
    /// Method, scheme, authority, path and fields, exactly as sent.
    public var head: HTTPRequest
    /// The body, or nil for none or for a streamed one; small by nature (a query).
    public var body: Data?
    /// A body that is read while it is sent, in place of ``body``; it can be sent only once.
    public var upload: UploadBody?
    /// Called with each interim response (1xx but 101) before the head, on a thread that must not
    /// wait.
    public var onInterim: (@Sendable (HTTPResponse) -> Void)?
    /// The maximum wait for a connection, by default 10 s.
    public var connectTimeout: Duration
    /// Called before the exchange begins, with a closure that ends it from any thread; see
    /// ``CancellableTransport``.
    package var onStart: (@Sendable (_ cancel: @escaping @Sendable () -> Void) -> Void)?
    /// Called when the owner of the directory is asked in the place of the origin, and with nil when
    /// the origin is after all.
    package var onOwner: (@Sendable (OwnerPresence?) -> Void)?
    /// What another cache has to know to store the response; nil if it must not have the request.
    package var shared: SharedRequest?
    /// The socket to send it by, in the place of a connection to the authority.
    package var socket: OwnerSocket?

    /// Creates a request.
    public init(
        head: HTTPRequest,
        body: Data? = nil,
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
    /// The body, to be read.
    public var body: any TransportBody {
        // Another body, as one that decodes the first, need not have its bytes.
        didSet { whole = nil }
    }
    /// The local address of the exchange, such as `192.0.2.1`; nil if unknown.
    ///
    /// If the machine loses it, the exchange is ended at once; one with an unknown address is ended
    /// with any.
    public var localAddress: String?
    /// What the owner of the directory, which has answered, says beside the response; else nil.
    package var owner: OwnerAnswer?
    /// All of the body, where it has come with the head; ``body`` yields it as well.
    package var whole: BodyChunk?

    /// Creates a response.
    public init(head: HTTPResponse, body: any TransportBody, localAddress: String? = nil) {
        self.head = head
        self.body = body
        self.localAddress = localAddress
    }
}

/// A response body that is read in pieces; unread bytes stay in the socket.
///
/// For one consumer at a time. Releasing the last reference, or ``cancel()``, closes the exchange.
public protocol TransportBody: AnyObject, Sendable {
    /// Waits for the next bytes.
    ///
    /// A chunk has at least one byte and at most 1 MiB (usually 64 KiB or less).
    ///
    /// - Returns: the bytes, or nil at the end of a completely framed body (RFC 9112 §8). A body
    ///   that is framed by the close of the connection also ends with nil. Nil guarantees that
    ///   every byte was returned before; after a cancellation that dropped some, this throws.
    /// - Throws: ``TransportError``; also when the body ended before its framing was satisfied.
    func next() async throws(TransportError) -> BodyChunk?

    /// Whether ``next()`` returns at once; false if unknown, which costs only time.
    var isNextAtHand: Bool { get }

    /// Closes the exchange now. May be called from any thread, any number of times.
    func cancel()
}

extension TransportBody {
    /// False: unknown.
    public var isNextAtHand: Bool { false }
}

/// Why an exchange failed, as far as the engine's next step depends on it.
public struct TransportError: Error, Hashable, Sendable, CustomStringConvertible {
    /// The kinds of failure.
    public enum Kind: String, Hashable, Sendable {
        /// The name did not resolve, temporarily or permanently.
        case nameResolution
        /// No connection: refused, unreachable, or not established within the connect timeout.
        case connect
        /// The certificate was not accepted, or the TLS handshake failed.
        case tls
        /// The connection closed before the response was complete.
        case closedEarly
        /// The peer sent bytes that are not HTTP.
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
    /// The description of the underlying library, for people.
    public let description: String
    /// Whether the peer took too long, rather than refused.
    public let isTimeout: Bool
    /// What became of the owner of the directory that was asked in the place of the origin, which
    /// may answer; nil for an exchange with an origin.
    package private(set) var owner: OwnerFailure?

    /// Creates an error.
    public init(_ kind: Kind, _ description: String, isTimeout: Bool = false) {
        self.kind = kind
        self.description = description
        self.isTimeout = isTimeout
    }

    /// The owner of the directory had no response, or broke it off.
    package static func fromOwner(
        _ description: String,
        _ failure: OwnerFailure = .noAnswer
    ) -> TransportError {
        var error = TransportError(.closedEarly, description)
        error.owner = failure
        return error
    }
}
