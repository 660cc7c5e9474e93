#if HTTPClient
import NIOCore
import NIOHTTP1

/// Sends the last bytes of a body with a known length together with the end of the request.
///
/// An origin may answer and close as soon as it has the last byte. The library takes a close before
/// it has ended the request for a failure, although the answer was complete; between the two it
/// would otherwise ask the body for more.
final class LastPartDelay: ChannelOutboundHandler {
    typealias OutboundIn = HTTPClientRequestPart
    typealias OutboundOut = HTTPClientRequestPart

    /// Bytes of the body that have not been written; nil for a body in chunks.
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
