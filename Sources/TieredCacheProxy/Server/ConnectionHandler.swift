import DequeModule
import HTTPTypes
import Logging
import NIOCore
import NIOHTTP1
import TieredCache

/// Answers the requests of one connection sequentially.
///
/// Confined to the connection's event loop; tasks use it through ``ConnectionReference``.
///
/// States of an exchange: no response → head sent → finished, and the next request is passed on;
/// or, from any of them, cut off: the connection is closed.
final class ConnectionHandler: ChannelInboundHandler, RemovableChannelHandler {
    typealias InboundIn = HTTPServerRequestPart
    typealias OutboundOut = IOData

    /// A request and the state of its response.
    struct Exchange {
        let request: ServerRequest
        let number: UInt64
        var isRequestComplete = false
        /// Received pieces of the request's body that have not been pulled yet.
        var parts = Deque<ByteBuffer>()
        var partWaiter: EventLoopPromise<ByteBuffer?>?
        var hasToContinue: Bool
        /// How many interim responses were written, and how many of them wait for the socket.
        var interims = (all: 0, unsent: 0)
        /// The bytes sent since the last pause.
        var unbroken: Int64 = 0
        var answer: OutgoingResponse?
        var task: Task<Void, Never>?

        init(_ request: ServerRequest, number: UInt64) {
            self.request = request
            self.number = number
            hasToContinue = request.expectsContinue
        }
    }

    /// A response in progress.
    struct OutgoingResponse {
        let framing: ResponseHead.Framing
        let persists: Bool
        /// The bytes missing to the announced length; nil without one.
        var missing: Int64?
        var lastWrite: EventLoopFuture<Void>
    }

    let server: ServerContext
    let gate: RequestGate
    var exchange: Exchange?
    var context: ChannelHandlerContext?
    /// Whether the connection ends after the current exchange.
    var isLast = false
    var isEnding = false
    /// The socket's descriptor, once it was needed.
    var descriptor: CInt?
    /// What tasks of the connection run on, once one was needed.
    private var executor: EventLoopExecutor?
    private var lastNumber: UInt64 = 0
    private var bodyTimer: ConnectionTimer?
    private var absenceTimer: ConnectionTimer?
    /// The unsent bytes at the last check of the absence timer.
    private var unsentBefore = Int.max

    init(server: ServerContext, gate: RequestGate) {
        self.server = server
        self.gate = gate
    }

    /// The number of the current exchange, or nil.
    var currentNumber: UInt64? { exchange?.number }

    func handlerAdded(context: ChannelHandlerContext) {
        self.context = context
    }

    func handlerRemoved(context: ChannelHandlerContext) {
        self.context = nil
    }

    func channelInactive(context: ChannelHandlerContext) {
        abandon(.closed)
        bodyTimer?.cancel()
        absenceTimer?.cancel()
        context.fireChannelInactive()
    }

    func channelRead(context: ChannelHandlerContext, data: NIOAny) {
        switch unwrapInboundIn(data) {
        case .head(let head):
            begin(ServerRequest(head, unknownMethod: gate.takeUnknownMethod()))
        case .body(let bytes):
            deliver(bytes)
        case .end:
            // Trailers are dropped, since none is used (RFC 9110 §6.5.1).
            exchange?.isRequestComplete = true
            exchange?.partWaiter?.succeed(nil)
            exchange?.partWaiter = nil
            bodyTimer?.stop()
            if exchange?.request.hasBody == false { respond() }
        }
    }

    func channelReadComplete(context: ChannelHandlerContext) {
        // Only framing arrived, no bytes.
        if exchange?.partWaiter != nil { context.read() }
        context.fireChannelReadComplete()
    }

    func errorCaught(context: ChannelHandlerContext, error: any Error) {
        if error is HTTPParserError {
            refuse(.malformed("the parser: \(error)"))
        } else {
            context.close(promise: nil)
        }
    }

    func userInboundEventTriggered(context: ChannelHandlerContext, event: Any) {
        switch event {
        case let refusal as RequestRefusal:
            refuse(refusal)
        case is ServerStopEvent:
            isLast = true
            if exchange == nil { context.close(promise: nil) }
        case is MakeRoomEvent:
            makeRoom()
        // A FIN: the client has left, or has only said that it sends no more (RFC 9112 §9.6).
        case ChannelEvent.inputClosed:
            didLoseInput()
        default:
            context.fireUserInboundEventTriggered(event)
        }
    }

    // MARK: Requests

    private func begin(_ request: ServerRequest) {
        lastNumber += 1
        exchange = Exchange(request, number: lastNumber)
        // The parser takes further bytes for another protocol, although no upgrade was accepted.
        if request.head.headers.contains(name: "upgrade") || request.head.method == .CONNECT {
            isLast = true
        }
        if request.hasBody { respond() }
    }

    private func respond() {
        guard let exchange, context != nil else { return }
        if !exchange.request.hasBody,
            let upgrade = server.responder.upgrade(for: exchange.request)
        {
            return become(upgrade)
        }
        if let answer = server.responder.immediateResponse(to: exchange.request) {
            return writePending(answer)
        }
        let (responder, request) = (server.responder, exchange.request)
        startTask { reference in
            let respond = { @Sendable in
                await responder.respond(
                    to: request,
                    body: RequestBody(connection: reference),
                    with: ResponseWriter(connection: reference)
                )
            }
            guard let observer = responder.observer else { return await respond() }
            await observer.continueTrace(of: request.fields, in: respond)
        }
    }

    /// Lets a task on the event loop answer the exchange; a response that is not finished when the
    /// task ends is cut off.
    func startTask(_ work: @escaping @Sendable (ConnectionReference) async -> Void) {
        guard let exchange, let context else { return }
        let executor = executor ?? EventLoopExecutor(context.eventLoop)
        self.executor = executor
        let reference = ConnectionReference(
            handler: NIOLoopBound(self, eventLoop: context.eventLoop),
            executor: executor,
            number: exchange.number
        )
        self.exchange?.task = Task(executorPreference: executor) {
            await work(reference)
            reference.submit { $0.didReturn() }
        }
    }

    private func didReturn() {
        if !isEnding { cut() }
    }

    private func deliver(_ bytes: ByteBuffer) {
        guard let waiter = exchange?.partWaiter else {
            exchange?.parts.append(bytes)
            return
        }
        bodyTimer?.stop()
        exchange?.partWaiter = nil
        waiter.succeed(bytes)
    }

    /// The next piece of the request's body.
    func nextBodyPart() -> EventLoopFuture<ByteBuffer?> {
        guard let context, exchange != nil, exchange?.partWaiter == nil else {
            return server.failedFuture(ConnectionFailure.closed)
        }
        if let part = exchange?.parts.popFirst() {
            return context.eventLoop.makeSucceededFuture(part)
        }
        guard exchange?.isRequestComplete == false else {
            return context.eventLoop.makeSucceededFuture(nil)
        }
        sendContinueIfAwaited()
        let promise = context.eventLoop.makePromise(of: ByteBuffer?.self)
        exchange?.partWaiter = promise
        startBodyTimer(context)
        context.read()
        return promise.futureResult
    }

    private func sendContinueIfAwaited() {
        // RFC 9110 §10.1.1: not before the body is wanted, so that a refused upload is never sent.
        guard exchange?.hasToContinue == true, exchange?.answer == nil else { return }
        exchange?.hasToContinue = false
        guard let context else { return }
        let bytes = ByteBuffer(string: "HTTP/1.1 100 Continue\r\n\r\n")
        context.writeAndFlush(wrapOutboundOut(.byteBuffer(bytes)), promise: nil)
    }

    private func startBodyTimer(_ context: ChannelHandlerContext) {
        let timer =
            bodyTimer
            ?? ConnectionTimer(eventLoop: context.eventLoop) { [unowned self] in
                guard let waiter = exchange?.partWaiter else { return }
                exchange?.partWaiter = nil
                waiter.fail(ConnectionFailure.tooSlow)
                if exchange?.answer == nil { refuse(.timeout) } else { cut() }
            }
        bodyTimer = timer
        timer.start(server.limits.bodyTimeout)
    }

    // MARK: Ends

    /// Called when the client sends no more: it has disconnected, or it has closed its side and
    /// still reads.
    ///
    /// A client whose socket takes no byte for a second counts as disconnected, so that its fetch
    /// is cancelled.
    private func didLoseInput() {
        guard let context else { return }
        isLast = true
        guard let exchange, exchange.isRequestComplete, !isEnding else {
            context.close(promise: nil)
            return
        }
        let timer = ConnectionTimer(eventLoop: context.eventLoop) { [unowned self] in
            guard let context = self.context else { return }
            let unsent = Self.unsent(of: context.channel)
            guard unsent > 0, unsent < unsentBefore else { return context.close(promise: nil) }
            unsentBefore = unsent
            absenceTimer?.start(.seconds(1))
        }
        absenceTimer = timer
        unsentBefore = .max
        timer.start(.seconds(1))
    }

    /// The bytes given to the channel that its socket has not taken.
    private static func unsent(of channel: any Channel) -> Int {
        do {
            return try channel.syncOptions?.getOption(.bufferedWritableBytes) ?? 0
        } catch {
            return 0  // The channel is closed.
        }
    }

    /// Called when clients wait for a connection: an idle connection is closed, one whose response
    /// has not begun is closed after it.
    private func makeRoom() {
        guard let exchange else {
            if gate.isIdle(for: MakeRoomEvent.patience) { context?.close(promise: nil) }
            return
        }
        // Only then can its head still say `Connection: close`.
        if exchange.answer == nil { isLast = true }
    }

    /// Called when the client's machine has acknowledged bytes.
    func didWrite() {
        unsentBefore = .max
        absenceTimer?.start(.seconds(1))
    }

    /// Ends the exchange without a response: cancels its task and fails a pending read of the body.
    func abandon(_ failure: ConnectionFailure) {
        exchange?.task?.cancel()
        exchange?.partWaiter?.fail(failure)
        exchange?.partWaiter = nil
        exchange = nil
    }
}
