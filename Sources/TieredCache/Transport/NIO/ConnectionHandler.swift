#if HTTPClient
import HTTPTransport
import HTTPTypes
import NIOCore
import NIOTLS

/// Carries the exchanges of one connection, one after the other, on its event loop.
///
/// Reads are passed on while the exchange has space. Only after the peer has closed does the
/// channel read without a request, and then no more than the kernel's buffer holds. However a
/// connection ends, by a close (FIN) or a reset (RST), the bytes that the kernel had received are
/// read first.
final class ConnectionHandler: ChannelDuplexHandler {
    typealias InboundIn = ByteBuffer
    typealias OutboundIn = ByteBuffer
    typealias OutboundOut = ByteBuffer

    private let pool: ConnectionPool
    private let peer: ConnectionPeer
    private var context: ChannelHandlerContext?
    /// Set while the handler is in a pipeline.
    private(set) var connection: Connection?
    private var opening: ConnectionOpening?
    private var state = ConnectionState()
    private var parser = ResponseParser()
    /// Whether the content of the request under way goes out in chunks.
    private var isChunked = false
    /// The exchange with an awaited or incomplete response; nil between two.
    private var exchange: Exchange?
    /// The local address of the connection; nil until the first request, as asking is a call of the
    /// system.
    private var localAddress: String??
    /// Whether a read waits until the exchange has space.
    private var isReadPaused = false
    private var idleness = Idleness()

    init(peer: ConnectionPeer, pool: ConnectionPool) {
        self.peer = peer
        self.pool = pool
    }

    func handlerAdded(context: ChannelHandlerContext) {
        self.context = context
        connection = Connection(
            peer: peer,
            handler: NIOLoopBound(self, eventLoop: context.eventLoop)
        )
    }

    func handlerRemoved(context: ChannelHandlerContext) {
        if let connection { pool.didClose(connection) }
        self.context = nil
        connection = nil
    }

    /// Waits until the connection can carry requests.
    ///
    /// - Parameters:
    ///   - isSecure: whether that is only after the handshake of TLS.
    ///   - deadline: when to give up.
    /// - Returns: the connection.
    func open(isSecure: Bool, until deadline: NIODeadline) -> EventLoopFuture<Connection>? {
        guard let context, let connection else { return nil }
        guard isSecure else { return context.eventLoop.makeSucceededFuture(connection) }
        let opening = ConnectionOpening(connection, in: context, until: deadline)
        if let failure = state.failure { opening.fail(failure) }
        self.opening = opening
        return opening.future
    }

    // MARK: Exchanges

    /// Sends a request, unless the connection was closed meanwhile: then another one carries it.
    func begin(_ request: OutgoingRequest, for exchange: Exchange) {
        guard let context, context.channel.isActive, state.begin(isAlone: request.isAlone) else {
            return pool.startAgain(request, for: exchange)
        }
        self.exchange = exchange
        parser.begin(request.head.method)
        isChunked = request.head.isChunked
        let address = localAddress ?? context.localAddress?.ipAddress
        localAddress = address
        exchange.didConnect(from: address)
        let (identity, eventLoop) = (ObjectIdentifier(exchange), context.eventLoop)
        let handler = NIOLoopBound(self, eventLoop: eventLoop)
        exchange.didStart(cancelRequest: {
            eventLoop.execute { handler.value.cancel(identity) }
        })
        // A cancel before the start wins (invariant 11); the connection is closed by it.
        guard !exchange.isCancelled else { return }
        context.write(wrapOutboundOut(request.head.bytes), promise: nil)
        switch request.content {
        case .none:
            endRequest(of: identity)
        case .bytes(let bytes):
            write(bytes, isLast: true, of: identity, promise: nil)
        case .streamed(let upload):
            context.flush()
            UploadWriter(handler: handler, exchange: identity).run(upload, on: eventLoop)
        }
    }

    /// Sends content of a request that is still under way.
    ///
    /// The last bytes go out together with the end of the request: an origin may respond and close
    /// as soon as it has them.
    func write(
        _ bytes: ByteBuffer,
        isLast: Bool,
        of exchange: ObjectIdentifier,
        promise: EventLoopPromise<Void>?
    ) {
        guard let context, isCurrent(exchange) else {
            promise?.fail(ChannelError.ioOnClosedChannel)
            return
        }
        let sent = isChunked ? RequestHead.chunk(bytes) : bytes
        context.write(wrapOutboundOut(sent), promise: promise)
        if isLast { endRequest(of: exchange) } else { context.flush() }
    }

    /// Ends the request; a chunked one, or one whose content has gone out.
    func endRequest(of exchange: ObjectIdentifier) {
        guard let context, isCurrent(exchange) else { return }
        state.didSendRequest()
        if isChunked { context.write(wrapOutboundOut(RequestHead.lastChunk), promise: nil) }
        context.flush()
    }

    /// Ends an exchange whose content could not be had.
    func failRequest(of exchange: ObjectIdentifier, with error: any Error) {
        guard let context, isCurrent(exchange) else { return }
        _ = state.didFail(error)
        context.close(promise: nil)
    }

    private func isCurrent(_ exchange: ObjectIdentifier) -> Bool {
        self.exchange.map(ObjectIdentifier.init) == exchange
    }

    private func cancel(_ exchange: ObjectIdentifier) {
        guard isCurrent(exchange) else { return }
        context?.close(promise: nil)
    }

    /// Closes the connection, whatever it does.
    func close() {
        exchange?.cancel()
        opening?.fail(ConnectionClosed())
        context?.close(promise: nil)
    }

    // MARK: What the peer sends

    func channelRead(context: ChannelHandlerContext, data: NIOAny) {
        // Behind a failure nothing can be believed.
        guard state.failure == nil else { return }
        parser.add(unwrapInboundIn(data))
        do throws(ResponseSyntaxError) {
            while let event = try parser.next() { didRead(event) }
        } catch {
            if state.didFail(error) { context.close(promise: nil) }
        }
    }

    private func didRead(_ event: ResponseParser.Event) {
        switch event {
        case .head(let head) where head.isInterim: exchange?.onInterim?(head.response)
        case .head(let head):
            state.didReceive(head)
            exchange?.didReceive(head.response)
        case .body(let part): exchange?.didReceive(part)
        case .end: state.didReceiveEnd()
        }
    }

    func channelReadComplete(context: ChannelHandlerContext) {
        settle(context)
        exchange?.didCompleteRead()
        context.fireChannelReadComplete()
    }

    /// Ends an exchange whose response has ended.
    private func settle(_ context: ChannelHandlerContext) {
        guard let end = state.didCompleteRead() else { return }
        let ended = exchange.take()
        switch end {
        case .keep: rest(context)
        case .close: context.close(promise: nil)
        }
        // After the pool has the connection back, so that the next request finds it.
        ended?.didReceiveEnd()
    }

    private func rest(_ context: ChannelHandlerContext) {
        guard let connection, pool.giveBack(connection) else {
            context.close(promise: nil)
            return
        }
        let handler = NIOLoopBound(self, eventLoop: context.eventLoop)
        idleness.begin(on: context.eventLoop) { handler.value.lookWhetherIdle() }
        // The idle connection must notice when the peer closes it.
        goOn(context)
    }

    private func lookWhetherIdle() {
        guard let context, let connection else { return }
        let handler = NIOLoopBound(self, eventLoop: context.eventLoop)
        let isOver = idleness.look(isIdle: state.isIdle, on: context.eventLoop) {
            handler.value.lookWhetherIdle()
        }
        // One that was taken meanwhile is about to have a request.
        if isOver, pool.takeBack(connection) { context.close(promise: nil) }
    }

    func read(context: ChannelHandlerContext) {
        guard let exchange, exchange.isFull else { return context.read() }
        let eventLoop = context.eventLoop
        let handler = NIOLoopBound(self, eventLoop: eventLoop)
        isReadPaused = exchange.hold {
            eventLoop.execute { handler.value.goOn() }
        }
        guard !isReadPaused else { return }
        context.read()
    }

    private func goOn() {
        if let context { goOn(context) }
    }

    private func goOn(_ context: ChannelHandlerContext) {
        guard isReadPaused else { return }
        isReadPaused = false
        context.read()
    }

    // MARK: Ends

    func userInboundEventTriggered(context: ChannelHandlerContext, event: Any) {
        if case TLSUserEvent.handshakeCompleted? = event as? TLSUserEvent { opening?.succeed() }
        context.fireUserInboundEventTriggered(event)
    }

    func errorCaught(context: ChannelHandlerContext, error: any Error) {
        opening?.fail(error)
        if state.didFail(error) { context.close(promise: nil) }
    }

    func channelInactive(context: ChannelHandlerContext) {
        opening?.fail(ConnectionClosed())
        isReadPaused = false
        idleness.end()
        if parser.close() == .end { state.didReceiveEnd() }
        settle(context)
        let failure = state.didClose()
        let ended = exchange.take()
        if let connection { _ = pool.takeBack(connection) }
        if let failure { ended?.didFail(failure) }
        context.fireChannelInactive()
    }
}
#endif
