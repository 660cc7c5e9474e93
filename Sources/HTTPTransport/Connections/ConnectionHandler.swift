import HTTPTypes
import NIOCore
import NIOTLS

/// Carries the exchanges of one connection, one after the other, on its event loop.
///
/// Reads are passed on while the receiver has space. Only after the peer has closed does the
/// channel read without a request, and then no more than the kernel's buffer holds. However a
/// connection ends, by a close (FIN) or a reset (RST), the bytes that the kernel had received are
/// read first.
final class ConnectionHandler: ChannelDuplexHandler {
    typealias InboundIn = ByteBuffer
    typealias OutboundIn = ByteBuffer
    typealias OutboundOut = ByteBuffer
    /// Which exchange of the connection; the first is 1.
    typealias ExchangeNumber = Int

    /// A request with an awaited or incomplete response.
    private struct Exchange {
        let number: ExchangeNumber
        let request: OutgoingRequest
        let receiver: any ResponseReceiver
    }

    let peer: ConnectionPeer
    private let pool: ConnectionPool
    private var context: ChannelHandlerContext?
    /// Set until the connection is open, or closed: it keeps this object alive.
    private var opening: ConnectionOpening?
    private var state = ConnectionState()
    private var parser = ResponseParser()
    private var gathering = ResponseGathering()
    /// Ends the wait for the rest of a short response.
    private var gatheringTimer: Scheduled<Void>?
    /// Nil between two.
    private var exchange: Exchange?
    private var count: ExchangeNumber = 0
    /// The local address of the connection; nil until the first request, as asking is a call of the
    /// system.
    private var localAddress: String??
    /// Whether a read waits until the receiver has space.
    private var isReadPaused = false
    private var idleness = Idleness()

    init(peer: ConnectionPeer, pool: ConnectionPool) {
        self.peer = peer
        self.pool = pool
    }

    func handlerAdded(context: ChannelHandlerContext) {
        self.context = context
    }

    func handlerRemoved(context: ChannelHandlerContext) {
        pool.didClose(self)
        self.context = nil
    }

    /// Waits until the connection can carry requests.
    ///
    /// - Parameters:
    ///   - isSecure: whether that is only after the handshake of TLS.
    ///   - deadline: when to give up.
    /// - Returns: the connection; nil if it is closed.
    func open(
        isSecure: Bool,
        until deadline: NIODeadline
    ) -> EventLoopFuture<NIOLoopBound<ConnectionHandler>>? {
        guard let context else { return nil }
        let connection = NIOLoopBound(self, eventLoop: context.eventLoop)
        guard isSecure else { return context.eventLoop.makeSucceededFuture(connection) }
        let opening = ConnectionOpening(connection, in: context, until: deadline)
        if let failure = state.failure {
            opening.fail(failure)
        } else {
            self.opening = opening
        }
        return opening.future
    }

    // MARK: Exchanges

    /// Sends a request, unless the connection was closed meanwhile: then another one carries it.
    func begin(_ request: OutgoingRequest, for receiver: any ResponseReceiver) {
        guard let context, context.channel.isActive, state.begin(isAlone: request.isAlone) else {
            return pool.start(request, for: receiver)
        }
        count += 1
        let number = count
        exchange = Exchange(number: number, request: request, receiver: receiver)
        parser.begin(request.head.method)
        let address = localAddress ?? context.localAddress?.ipAddress
        localAddress = address
        let eventLoop = context.eventLoop
        let handler = NIOLoopBound(self, eventLoop: eventLoop)
        let isWanted = receiver.willSend(from: address) {
            eventLoop.execute { handler.value.cancel(number) }
        }
        guard isWanted else { return cancel(number) }
        context.write(wrapOutboundOut(request.head.bytes), promise: nil)
        switch request.content {
        case .none:
            endRequest(of: number)
        case .bytes(let bytes):
            write(bytes, isLast: true, of: number, promise: nil)
        case .streamed(let length, let next):
            context.flush()
            UploadWriter(handler: handler, exchange: number, length: length, next: next)
                .run(on: eventLoop)
        }
    }

    /// Sends content of a request that is still under way.
    ///
    /// The last bytes go out together with the end of the request: an origin may respond and close
    /// as soon as it has them.
    func write(
        _ bytes: ByteBuffer,
        isLast: Bool,
        of number: ExchangeNumber,
        promise: EventLoopPromise<Void>?
    ) {
        guard let context, let exchange = current(number) else {
            promise?.fail(ChannelError.ioOnClosedChannel)
            return
        }
        let sent = exchange.request.head.isChunked ? RequestHead.chunk(bytes) : bytes
        context.write(wrapOutboundOut(sent), promise: promise)
        if isLast { endRequest(of: number) } else { context.flush() }
    }

    /// Ends the request; a chunked one, or one whose content has gone out.
    func endRequest(of number: ExchangeNumber) {
        guard let context, let exchange = current(number) else { return }
        state.didSendRequest()
        if exchange.request.head.isChunked {
            context.write(wrapOutboundOut(RequestHead.lastChunk), promise: nil)
        }
        context.flush()
    }

    /// Ends an exchange whose content could not be had.
    func failRequest(of number: ExchangeNumber, with error: any Error) {
        guard let context, current(number) != nil else { return }
        _ = state.didFail(error)
        context.close(promise: nil)
    }

    private func current(_ number: ExchangeNumber) -> Exchange? {
        exchange.flatMap { $0.number == number ? $0 : nil }
    }

    private func cancel(_ number: ExchangeNumber) {
        guard current(number) != nil else { return }
        // Nobody is told any more, and nothing is sent again; nor is what still comes before TLS has
        // closed the end of a response, behind which the connection could be kept.
        exchange = nil
        _ = state.didFail(ConnectionClosed())
        context?.close(promise: nil)
    }

    /// Closes the connection, whatever it does; its exchange fails at once, since TLS may take a
    /// while to close.
    func close() {
        _ = state.didFail(ExchangeError.shutDown)
        opening.take()?.fail(ExchangeError.shutDown)
        handOver(gathering.take())
        let receiver = exchange.take()?.receiver
        context?.close(promise: nil)
        receiver?.didFail(.shutDown)
    }

    // MARK: What the peer sends

    func channelRead(context: ChannelHandlerContext, data: NIOAny) {
        // Behind a failure nothing can be believed.
        guard state.failure == nil else { return }
        state.didReceiveBytes()
        parser.add(unwrapInboundIn(data))
        do throws(ResponseSyntaxError) {
            while let event = try parser.next() { didRead(event) }
        } catch {
            if state.didFail(error) { context.close(promise: nil) }
        }
    }

    private func didRead(_ event: ResponseParser.Event) {
        switch event {
        case .head(let head) where head.isInterim:
            exchange?.receiver.didReceiveInterim(head.response)
        case .head(let head):
            state.didReceive(head)
            gathering.begin(head)
        case .body(let part):
            guard !gathering.add(part) else { return }
            handOver(gathering.take())
            exchange?.receiver.didReceive(part)
        case .end: state.didReceiveEnd()
        }
    }

    /// Hands over what has come of a response, before it ends.
    private func handOver(_ gathered: ResponseGathering.Gathered?) {
        guard let gathered, let receiver = exchange?.receiver else { return }
        gatheringTimer?.cancel()
        receiver.didReceive(gathered.head)
        if gathered.body.readableBytes > 0 { receiver.didReceive(gathered.body) }
    }

    func channelReadComplete(context: ChannelHandlerContext) {
        settle(context)
        switch gathering.didCompleteRead() {
        case .none:
            handOver(gathering.take())
            exchange?.receiver.didCompleteRead()
        case .begins:
            let (number, handler) = (count, NIOLoopBound(self, eventLoop: context.eventLoop))
            gatheringTimer = context.eventLoop.scheduleTask(in: ResponseGathering.patience) {
                handler.value.giveUpGathering(number)
            }
        case .goesOn: break
        }
        context.fireChannelReadComplete()
    }

    private func giveUpGathering(_ number: ExchangeNumber) {
        guard let receiver = current(number)?.receiver else { return }
        handOver(gathering.take())
        receiver.didCompleteRead()
    }

    /// Ends an exchange whose response has ended.
    private func settle(_ context: ChannelHandlerContext) {
        guard let end = state.didCompleteRead() else { return }
        let receiver = exchange.take()?.receiver
        let whole = gathering.take()
        gatheringTimer?.cancel()
        switch end {
        case .keep: rest(context)
        case .close: context.close(promise: nil)
        }
        // After the pool has the connection back, so that the next request finds it.
        if let whole {
            receiver?.didReceiveWhole(whole.head, whole.body)
        } else {
            receiver?.didReceiveEnd()
        }
    }

    private func rest(_ context: ChannelHandlerContext) {
        guard pool.giveBack(self) else {
            context.close(promise: nil)
            return
        }
        let handler = NIOLoopBound(self, eventLoop: context.eventLoop)
        idleness.begin(on: context.eventLoop) { handler.value.lookWhetherIdle() }
        // The idle connection must notice when the peer closes it.
        goOn(context)
    }

    private func lookWhetherIdle() {
        guard let context else { return }
        let handler = NIOLoopBound(self, eventLoop: context.eventLoop)
        let isOver = idleness.look(isIdle: state.isIdle, on: context.eventLoop) {
            handler.value.lookWhetherIdle()
        }
        guard isOver else { return }
        // A request that finds it before it has closed goes elsewhere.
        _ = state.didFail(ConnectionClosed())
        context.close(promise: nil)
    }

    func read(context: ChannelHandlerContext) {
        guard let receiver = exchange?.receiver, receiver.isFull else { return context.read() }
        let eventLoop = context.eventLoop
        let handler = NIOLoopBound(self, eventLoop: eventLoop)
        isReadPaused = receiver.hold {
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
        if case TLSUserEvent.handshakeCompleted? = event as? TLSUserEvent {
            opening.take()?.succeed()
        }
        context.fireUserInboundEventTriggered(event)
    }

    func errorCaught(context: ChannelHandlerContext, error: any Error) {
        opening.take()?.fail(error)
        if state.didFail(error) { context.close(promise: nil) }
    }

    func channelInactive(context: ChannelHandlerContext) {
        opening.take()?.fail(ConnectionClosed())
        isReadPaused = false
        idleness.end()
        if parser.close() == .end { state.didReceiveEnd() }
        settle(context)
        let close = state.didClose()
        handOver(gathering.take())
        let ended = exchange.take()
        switch close {
        case .none: break
        case .startAgain:
            if let ended { pool.start(ended.request, for: ended.receiver, isAgain: true) }
        case .fail(let error): ended?.receiver.didFail(error)
        }
        context.fireChannelInactive()
    }
}
