#if HTTPClient
import AsyncHTTPClient
import HTTPTypes
import NIOCore
import NIOHTTP1

/// Passes bodies and interim responses of a connection directly to their exchange.
///
/// The library passes a body on in pieces, keeps pieces until they are read, and drops them if the
/// connection breaks meanwhile, though they have arrived; it ignores interim responses (1xx). So
/// it gets neither: the decoder's output goes straight into the exchange, and the library sees only
/// heads and ends. However a connection ends, by a close (FIN) or a reset (RST), the bytes that the
/// kernel had received are read first. A response that has reached its end is complete, even if
/// the peer did not wait for the whole request.
///
/// Reads are passed on while the exchange has space. Only after the peer has closed does the
/// channel read without a request, and then no more than the kernel's buffer holds.
///
/// A request carries the number of its exchange, which is never sent. A connection has one request
/// at a time, so received bytes belong to the last one.
final class ResponseReader: ChannelDuplexHandler {
    typealias InboundIn = HTTPClientResponsePart
    typealias InboundOut = HTTPClientResponsePart
    typealias OutboundIn = HTTPClientRequestPart
    typealias OutboundOut = HTTPClientRequestPart

    /// Never sent: identifies the exchange of a request.
    static let fieldName = "tieredcache-exchange"

    /// The exchange with an awaited or incomplete response; nil between two.
    private var exchange: AsyncHTTPClientExchange?
    /// The local address of the connection; nil until the first request, as asking is a call of the
    /// system.
    private var localAddress: String??
    /// Whether a read waits until the exchange has space.
    private var isReadPaused = false
    /// Whether an error occurred below: an end may then be premature, which the library can tell.
    private var isBroken = false
    /// The maximum number of interim responses to one request; a peer that sends more is hostile.
    static let maximumInterims = 64

    private var interims = 0
    /// Whether the peer has sent invalid bytes instead of a response; all later ones are ignored.
    private var isRefused = false

    func write(
        context: ChannelHandlerContext,
        data: NIOAny,
        promise: EventLoopPromise<Void>?
    ) {
        guard case .head(var head) = unwrapOutboundIn(data) else {
            context.write(data, promise: promise)
            return
        }
        exchange = head.headers.first(name: Self.fieldName).flatMap { PendingExchanges.take($0) }
        let address = localAddress ?? context.localAddress?.ipAddress
        localAddress = address
        exchange?.didConnect(from: address)
        interims = 0
        head.headers.remove(name: Self.fieldName)
        context.write(wrapOutboundOut(.head(head)), promise: promise)
    }

    func channelRead(context: ChannelHandlerContext, data: NIOAny) {
        guard !isRefused else { return }
        guard let exchange else { return context.fireChannelRead(data) }
        switch unwrapInboundIn(data) {
        case .head(let head):
            // To the library a status below 200 is an interim response, to the parser one below 100
            // has a body: that body would trap.
            guard head.status.code >= 100 else { return refuse(context) }
            if (100..<200).contains(head.status.code), head.status != .switchingProtocols {
                interims += 1
                guard interims <= Self.maximumInterims else { return refuse(context) }
                exchange.onInterim?(HTTPResponse(head))
            } else {
                exchange.didReceive(HTTPResponse(head))
            }
            context.fireChannelRead(data)
        case .body(let part):
            exchange.didReceive(part)
        case .end:
            self.exchange = nil
            context.fireChannelRead(data)
            // After the library has the connection back, so that the next request finds it.
            if !isBroken { exchange.didReceiveEnd() }
            // The idle connection must notice when the peer closes it.
            goOn(context)
        }
    }

    func channelReadComplete(context: ChannelHandlerContext) {
        exchange?.didCompleteRead()
        context.fireChannelReadComplete()
    }

    func read(context: ChannelHandlerContext) {
        guard let exchange, exchange.isFull else { return context.read() }
        let eventLoop = context.eventLoop
        let bound = NIOLoopBound((self, context), eventLoop: eventLoop)
        isReadPaused = exchange.hold {
            eventLoop.execute {
                let (reader, context) = bound.value
                reader.goOn(context)
            }
        }
        guard !isReadPaused else { return }
        context.read()
    }

    func errorCaught(context: ChannelHandlerContext, error: any Error) {
        // Without its close_notify, TLS ends a body that only the close delimits at any byte.
        isBroken = true
        context.fireErrorCaught(error)
    }

    func channelInactive(context: ChannelHandlerContext) {
        exchange?.didCompleteRead()
        exchange = nil
        isReadPaused = false
        context.fireChannelInactive()
    }

    private func refuse(_ context: ChannelHandlerContext) {
        isRefused = true
        context.fireErrorCaught(HTTPParserError.invalidStatus)
        context.close(promise: nil)
    }

    private func goOn(_ context: ChannelHandlerContext) {
        guard isReadPaused else { return }
        isReadPaused = false
        context.read()
    }
}

/// The exchanges with requests that are not written yet.
enum PendingExchanges {
    private struct State {
        var nextNumber: UInt64 = 0
        var exchanges: [String: AsyncHTTPClientExchange] = [:]
    }

    private static let state = Guarded(State())

    /// Registers an exchange until its request is written.
    ///
    /// - Returns: the number that the request has to carry.
    static func keep(_ exchange: AsyncHTTPClientExchange) -> String {
        state.withLock { state in
            state.nextNumber &+= 1
            let number = String(state.nextNumber)
            state.exchanges[number] = exchange
            return number
        }
    }

    /// Removes an exchange: its request is written, or never will be.
    static func take(_ number: String) -> AsyncHTTPClientExchange? {
        state.withLock { $0.exchanges.removeValue(forKey: number) }
    }
}
#endif
