import NIOCore
import NIOWebSocket

/// Lets frames pass that a client may send (RFC 6455 §5.1, §5.2): with a mask, with an opcode that
/// is defined, without bits of extensions.
final class AgentFrameGuard: ChannelInboundHandler {
    typealias InboundIn = WebSocketFrame
    typealias InboundOut = WebSocketFrame

    /// Tells the handler behind of a frame that may not be.
    struct Violation: Sendable {}

    private static let opcodes: [WebSocketOpcode] = [
        .continuation, .text, .binary, .connectionClose, .ping, .pong,
    ]

    func channelRead(context: ChannelHandlerContext, data: NIOAny) {
        let frame = unwrapInboundIn(data)
        guard frame.maskKey != nil, Self.opcodes.contains(frame.opcode),
            !frame.rsv1, !frame.rsv2, !frame.rsv3
        else { return context.fireUserInboundEventTriggered(Violation()) }
        context.fireChannelRead(data)
    }
}
