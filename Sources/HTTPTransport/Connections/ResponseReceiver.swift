package import HTTPTypes
package import NIOCore

/// Learns what becomes of a request, on the event loop of its connection.
///
/// In this order: ``willSend(from:cancel:)``, which comes again if the request is sent once more;
/// interim responses; then a whole response, which ends the exchange, or a head, parts and
/// an end. A failure may take the place of each, and is the end.
package protocol ResponseReceiver: AnyObject, Sendable {
    /// Whether the connection should pause reading.
    var isFull: Bool { get }

    /// The request is about to be sent.
    ///
    /// - Parameters:
    ///   - localAddress: that of the connection, such as `192.0.2.1`.
    ///   - cancel: ends the exchange, from any thread. Nothing is called any more once the event
    ///     loop has got to it.
    /// - Returns: false if nobody wants the response: the connection is closed, and nothing is
    ///   called any more.
    func willSend(from localAddress: String?, cancel: @escaping @Sendable () -> Void) -> Bool

    func didReceiveInterim(_ head: HTTPResponse)

    /// The head and all of the body have come, about at once.
    func didReceiveWhole(_ head: HTTPResponse, _ body: ByteBuffer)

    func didReceive(_ head: HTTPResponse)

    /// Some bytes of the body have come, asked for or not.
    func didReceive(_ part: ByteBuffer)

    /// All of one read has been handed over.
    func didCompleteRead()

    /// Takes a closure that goes on with reading, once there is space; from any thread.
    ///
    /// - Returns: false if there is space by now: the closure is not called then.
    func hold(_ resumeReading: @escaping @Sendable () -> Void) -> Bool

    /// The body is complete.
    func didReceiveEnd()

    func didFail(_ error: ExchangeError)
}
