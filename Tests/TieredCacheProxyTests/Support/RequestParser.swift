import NIOCore
import NIOEmbedded
import NIOHTTP1

// In the fuzzer, whose module these are a part of, there is none.
#if canImport(TieredCacheProxy)
@testable import TieredCacheProxy
#endif

/// SwiftNIO's parser of requests, as it stands behind the guard in a connection.
final class RequestParser {
    private let channel: EmbeddedChannel
    private let parts = Parts()

    init() {
        let decoder = HTTPRequestDecoder(leftOverBytesStrategy: .dropBytes)
        channel = EmbeddedChannel(handlers: [ByteToMessageHandler(decoder), parts])
    }

    /// The heads and the ends since the last request was begun.
    var heads: [HTTPRequestHead] { parts.heads }
    var ends: Int { parts.ends }
    /// Why the parser gave up.
    var error: (any Error)? { parts.error }
    /// Whether the connection ends after this request, as the handler behind the parser has it.
    var isLast: Bool { parts.isLast }

    func feed(_ bytes: some Sequence<UInt8>) {
        channel.pipeline.fireChannelRead(ByteBuffer(bytes: bytes))
        channel.pipeline.fireChannelReadComplete()
    }

    func beginNext() {
        parts.heads = []
        parts.ends = 0
    }

    func close() {
        channel.close(promise: nil)
    }

    /// What the gate gives the parser for bytes that begin with a head.
    static func ofKnownMethod(_ request: [UInt8]) -> [UInt8] {
        var bytes = ByteBuffer(bytes: request)
        _ = UnknownMethod.replace(in: &bytes)
        return Array(buffer: bytes)
    }

    private final class Parts: ChannelInboundHandler {
        typealias InboundIn = HTTPServerRequestPart

        var heads: [HTTPRequestHead] = []
        var ends = 0
        var error: (any Error)?
        var isLast = false

        func channelRead(context: ChannelHandlerContext, data: NIOAny) {
            switch unwrapInboundIn(data) {
            case .head(let head):
                heads.append(head)
                isLast = head.headers.contains(name: "upgrade") || head.method == .CONNECT
            case .body: break
            case .end: ends += 1
            }
        }

        func errorCaught(context: ChannelHandlerContext, error: any Error) {
            self.error = error
        }
    }
}
