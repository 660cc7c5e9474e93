import NIOCore

/// Passes one request at a time, checked by ``RequestGuard``, on to the parser.
///
/// Further input of the client (pipelining) waits here or in the socket. Heads are read by this
/// handler; bodies are pulled by the responder.
final class RequestGate: ChannelInboundHandler, RemovableChannelHandler {
    typealias InboundIn = ByteBuffer
    typealias InboundOut = ByteBuffer

    private let limits: ServerLimits
    private var subject: RequestGuard
    private var pending: ByteBuffer?
    private var context: ChannelHandlerContext?
    /// Whether a request was passed on completely and has not been answered yet.
    private var isHolding = false
    private var isPumping = false
    private var isStopped = false
    private var unknownMethod: String?
    private var timer: ConnectionTimer?
    /// When the connection was opened, or the last response was complete.
    private var idleSince = NIODeadline.distantFuture

    init(limits: ServerLimits) {
        self.limits = limits
        subject = RequestGuard(limits: limits)
    }

    func handlerAdded(context: ChannelHandlerContext) {
        self.context = context
        timer = ConnectionTimer(eventLoop: context.eventLoop) { [unowned self] in didTimeOut() }
    }

    func handlerRemoved(context: ChannelHandlerContext) {
        timer?.cancel()
        timer = nil
        self.context = nil
    }

    func channelActive(context: ChannelHandlerContext) {
        idleSince = context.eventLoop.now
        timer?.start(limits.idleTimeout)
        context.fireChannelActive()
        context.read()
    }

    func channelInactive(context: ChannelHandlerContext) {
        timer?.cancel()
        context.fireChannelInactive()
    }

    func channelRead(context: ChannelHandlerContext, data: NIOAny) {
        var bytes = unwrapInboundIn(data)
        guard !isStopped else { return }
        if pending == nil {
            pending = bytes
        } else {
            pending?.writeBuffer(&bytes)
        }
        pump()
    }

    func channelReadComplete(context: ChannelHandlerContext) {
        context.fireChannelReadComplete()
        readHead()
    }

    /// Passes the next request on; called when the previous one has been answered.
    func openForNext() {
        isHolding = false
        // The idle time starts here and not at the last byte, so that empty lines before a request
        // do not keep a connection open (RFC 9112 §2.2).
        if !isStopped {
            idleSince = context?.eventLoop.now ?? .distantFuture
            timer?.start(limits.idleTimeout)
        }
        guard !isPumping else { return }
        pump()
        readHead()
    }

    /// Drops pending and all further input: no further request is answered.
    func stop() {
        isStopped = true
        pending = nil
        timer?.stop()
    }

    /// Ends the work of the gate, as the connection goes on in another protocol.
    ///
    /// - Returns: what the client has sent beyond its request.
    func release() -> ByteBuffer? {
        defer { stop() }
        return pending
    }

    /// Whether the connection has had no request, nor the beginning of one, for `time`.
    func isIdle(for time: TimeAmount) -> Bool {
        guard let context, !isHolding, pending == nil, subject.state == .head else { return false }
        return context.eventLoop.now - idleSince >= time
    }

    /// The method of the head that was passed on last, if the parser does not know it.
    func takeUnknownMethod() -> String? {
        defer { unknownMethod = nil }
        return unknownMethod
    }

    private func readHead() {
        guard !isHolding, !isStopped, subject.state == .head else { return }
        context?.read()
    }

    // MARK: Passing on

    private func pump() {
        guard !isPumping else { return }
        isPumping = true
        defer { isPumping = false }
        while !isHolding, !isStopped, let bytes = pending, bytes.readableBytes > 0 {
            let isHead = subject.state == .head
            switch bytes.withUnsafeReadableBytes({ subject.inspection(of: $0) }) {
            case .success(.incomplete):
                if subject.state == .head { timer?.startUnlessRunning(limits.headTimeout) }
                return
            case .success(.drop(let count)):
                take(count)
            case .success(.pass(let count, let endsRequest)):
                timer?.stop()
                isHolding = endsRequest
                guard var part = take(count) else { return }
                if isHead { unknownMethod = UnknownMethod.replace(in: &part) }
                context?.fireChannelRead(wrapInboundOut(part))
            case .failure(let refusal):
                refuse(refusal)
            }
        }
    }

    @discardableResult
    private func take(_ count: Int) -> ByteBuffer? {
        let part = pending?.readSlice(length: count)
        if pending?.readableBytes == 0 { pending = nil }
        return part
    }

    private func refuse(_ refusal: RequestRefusal) {
        stop()
        context?.fireUserInboundEventTriggered(refusal)
    }

    private func didTimeOut() {
        guard let context, !isHolding, !isStopped, subject.state == .head else { return }
        if pending == nil {
            context.close(promise: nil)
        } else {
            refuse(.timeout)
        }
    }
}
