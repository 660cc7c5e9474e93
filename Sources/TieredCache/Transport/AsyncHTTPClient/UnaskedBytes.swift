#if HTTPClient
import DequeModule
import NIOCore
import NIOSSL

/// Holds what the peer sent before it closed until somebody asks for it.
///
/// NIO reads a socket to its end as soon as the peer has closed it, asked or not. The library drops
/// such bytes when the body then turns out to be cut, though they have arrived and were paid for:
/// as much as the kernel's receive buffer held. So the channel is told to survive the peer's end
/// (half closure); this handler passes on one read for each that is asked for, and when all has
/// been taken it closes the channel, which looks to the library as any close does.
///
/// What is held is what the kernel held, and no more. A reset (RST) ends the channel at once, and
/// with it what was not asked for.
///
/// Lies between TLS, if there is any, and HTTP.
final class UnaskedBytes: ChannelDuplexHandler {
    typealias InboundIn = ByteBuffer
    typealias InboundOut = ByteBuffer
    typealias OutboundIn = NIOAny
    typealias OutboundOut = NIOAny

    private enum Held {
        case part(NIOAny)
        case failure(any Error)
    }

    private var held = Deque<Held>()
    /// Whether a read was asked for and has brought nothing yet; the channel's own first one is.
    private var isWanted = true
    /// Whether something was passed on since the last completed read.
    private var hasPassed = false
    private var isInputClosed = false
    private var isDelivering = false

    // MARK: From the channel

    func channelRead(context: ChannelHandlerContext, data: NIOAny) {
        guard held.isEmpty, isWanted || hasPassed else { return held.append(.part(data)) }
        isWanted = false
        hasPassed = true
        context.fireChannelRead(data)
    }

    func channelReadComplete(context: ChannelHandlerContext) {
        guard held.isEmpty || hasPassed else { return }
        hasPassed = false
        context.fireChannelReadComplete()
    }

    func errorCaught(context: ChannelHandlerContext, error: any Error) {
        guard held.isEmpty, isWanted else { return held.append(.failure(error)) }
        context.fireErrorCaught(error)
    }

    func userInboundEventTriggered(context: ChannelHandlerContext, event: Any) {
        guard case ChannelEvent.inputClosed = event else {
            return context.fireUserInboundEventTriggered(event)
        }
        // Not passed on: to those above the connection ends when it is closed.
        isInputClosed = true
        deliver(context)
    }

    func channelInactive(context: ChannelHandlerContext) {
        while let next = held.popFirst() { pass(next, context) }
        context.fireChannelInactive()
    }

    // MARK: From the library

    func read(context: ChannelHandlerContext) {
        isWanted = true
        guard isInputClosed || !held.isEmpty else { return context.read() }
        deliver(context)
    }

    func close(
        context: ChannelHandlerContext,
        mode: CloseMode,
        promise: EventLoopPromise<Void>?
    ) {
        // Who closes wants nothing any more.
        held = []
        context.close(mode: mode, promise: promise)
    }

    /// Passes on what is asked for; asking again while it runs goes on with the loop.
    private func deliver(_ context: ChannelHandlerContext) {
        guard !isDelivering else { return }
        isDelivering = true
        defer { isDelivering = false }
        while isWanted, let next = held.popFirst() {
            pass(next, context)
            // As the channel does after each read: the library answers if it wants more.
            context.pipeline.read()
        }
        if isWanted, isInputClosed { closeChannel(context) }
    }

    private func pass(_ next: Held, _ context: ChannelHandlerContext) {
        switch next {
        case .part(let part):
            isWanted = false
            context.fireChannelRead(part)
            context.fireChannelReadComplete()
        case .failure(let error):
            context.fireErrorCaught(error)
        }
    }

    /// Closes below TLS, which would wait for the answer of a peer that has closed.
    private func closeChannel(_ context: ChannelHandlerContext) {
        // The look-up throws where there is no TLS.
        let tls = try? context.pipeline.syncOperations.context(
            handlerType: NIOSSLClientHandler.self
        )
        (tls ?? context).close(promise: nil)
    }
}
#endif
