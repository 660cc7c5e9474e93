#if HTTPClient
import NIOCore
import NIOHTTP1

/// Sends the last bytes of a body of known length together with the end of the request.
///
/// An origin may respond and close as soon as it has the last byte. The library treats a close
/// before the end of the request as a failure, although the response was complete; between the two
/// it would otherwise ask the body for more.
final class LastPartDelay: ChannelOutboundHandler {
    typealias OutboundIn = HTTPClientRequestPart
    typealias OutboundOut = HTTPClientRequestPart

    /// The number of body bytes not written yet; nil for a chunked body.
    private var missing: Int64?
    private var lastPart: NIOAny?

    func write(
        context: ChannelHandlerContext,
        data: NIOAny,
        promise: EventLoopPromise<Void>?
    ) {
        switch unwrapOutboundIn(data) {
        case .head(let head):
            lastPart = nil
            missing = head.headers.first(name: "content-length").flatMap { Int64($0) }
        case .body(let part):
            missing = missing.map { $0 - Int64(part.readableBytes) }
            guard missing == 0, part.readableBytes > 0 else { break }
            lastPart = data
            // Now: the body ends only after this, and its end is what sends the part.
            promise?.succeed()
            return
        case .end:
            if let lastPart { context.write(lastPart, promise: nil) }
            lastPart = nil
        }
        context.write(data, promise: promise)
    }
}
#endif
