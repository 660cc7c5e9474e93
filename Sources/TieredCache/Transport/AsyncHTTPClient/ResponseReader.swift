#if HTTPClient
import AsyncHTTPClient
import HTTPTypes
import NIOCore
import NIOHTTP1

/// Takes bodies and interim responses off a connection, for the exchange that they belong to.
///
/// The library hands a body on piece by piece, keeps pieces while nobody asks for more, and drops
/// them if the connection breaks meanwhile, though they have arrived and were paid for; interim
/// responses (1xx) it leaves out. So neither gets there: what the decoder finds goes straight into
/// the exchange, and the library sees heads and ends alone. Whatever ends a connection, be it a
/// close (FIN) or a reset (RST), what the kernel had received by then is read first. A response
/// that has come to its end is complete, also if the peer did not wait for all of the request.
///
/// A read is passed on while the exchange has room. Only when the peer has closed does the channel
/// read on unasked, and then no more than the kernel's buffer holds.
///
/// A request carries the number under which its exchange is found; the number never reaches the
/// wire. One request at a time is on a connection, so what arrives is for the last one.
final class ResponseReader: ChannelDuplexHandler {
    typealias InboundIn = HTTPClientResponsePart
    typealias InboundOut = HTTPClientResponsePart
    typealias OutboundIn = HTTPClientRequestPart
    typealias OutboundOut = HTTPClientRequestPart

    /// Never on the wire: names the exchange of a request.
    static let fieldName = "tieredcache-exchange"

    /// Whose response is awaited or under way; nil between two.
    private var exchange: AsyncHTTPClientExchange?
    /// Whether a read waits until the exchange has room.
    private var isReadPaused = false
    /// Whether something went wrong below: then an end may be a cut, which the library can tell.
    private var isBroken = false
    /// How many interim responses one request may have; what sends more means no good.
    static let maximumInterims = 64

    private var interims = 0
    /// Whether the peer has sent what is no answer; nothing that follows is one.
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
        exchange?.didConnect(from: context.localAddress?.ipAddress)
        interims = 0
        head.headers.remove(name: Self.fieldName)
        context.write(wrapOutboundOut(.head(head)), promise: promise)
    }

    func channelRead(context: ChannelHandlerContext, data: NIOAny) {
        guard !isRefused else { return }
        guard let exchange else { return context.fireChannelRead(data) }
        switch unwrapInboundIn(data) {
        case .head(let head):
            // To the library a status below 200 is an interim response, to the parser one below
            // 100 has a body: that body would trap.
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
            // The connection is idle, and has to notice when the peer closes it.
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

/// The exchanges whose requests are on their way to a connection.
enum PendingExchanges {
    private struct State {
        var nextNumber: UInt64 = 0
        var exchanges: [String: AsyncHTTPClientExchange] = [:]
    }

    private static let state = Guarded(State())

    /// Keeps an exchange until its request is written.
    ///
    /// - Returns: what the request has to carry.
    static func keep(_ exchange: AsyncHTTPClientExchange) -> String {
        state.withLock { state in
            state.nextNumber &+= 1
            let number = String(state.nextNumber)
            state.exchanges[number] = exchange
            return number
        }
    }

    /// Gives an exchange up: to the request that is written, or because it never was.
    static func take(_ number: String) -> AsyncHTTPClientExchange? {
        state.withLock { $0.exchanges.removeValue(forKey: number) }
    }
}
#endif
