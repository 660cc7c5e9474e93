import CLinuxCalls
import NIOCore
import TieredCache

/// Lets the listener accept connections while descriptors are available; checks again after
/// ``pause``.
///
/// Other clients wait in the kernel. Without this gate the last descriptor goes to a client, so
/// that files, connections to origins and the runtime get none; and a listener that fails to accept
/// is ready again at once, which keeps a processor busy.
final class AcceptGate: ChannelDuplexHandler {
    typealias InboundIn = any Channel
    typealias InboundOut = any Channel
    typealias OutboundIn = Never

    /// The time until the next check.
    static let pause = TimeAmount.milliseconds(50)

    private let hasRoom: (ChannelHandlerContext) -> Bool
    private let makeRoom: () -> Void
    /// Whether a check is scheduled; no connection is accepted before it.
    private var isPausing = false

    /// Creates the gate of one listener.
    ///
    /// - Parameters:
    ///   - hasRoom: returns whether one more connection may be accepted.
    ///   - makeRoom: asks open connections to end, because clients wait.
    init(hasRoom: @escaping (ChannelHandlerContext) -> Bool, makeRoom: @escaping () -> Void) {
        self.hasRoom = hasRoom
        self.makeRoom = makeRoom
    }

    /// Creates a gate that allows `maximum` open connections and reserves descriptors for the
    /// runtime.
    convenience init(_ connections: ConnectionRegistry, maximum: Int) {
        self.init(
            hasRoom: {
                connections.count < maximum && tc_may_keep_socket(Self.lowestFreeDescriptor($0))
            },
            makeRoom: { connections.makeRoom() }
        )
    }

    func read(context: ChannelHandlerContext) {
        guard !isPausing else { return }
        guard hasRoom(context) else { return pause(context) }
        context.read()
    }

    func errorCaught(context: ChannelHandlerContext, error: any Error) {
        // `accept` failed: the descriptor table of the process or the machine is full, or memory is
        // short. The listener stays open.
        guard error is IOError else { return context.fireErrorCaught(error) }
        if !isPausing { pause(context) }
    }

    private func pause(_ context: ChannelHandlerContext) {
        isPausing = true
        makeRoom()
        let bound = NIOLoopBound((self, context), eventLoop: context.eventLoop)
        context.eventLoop.scheduleTask(in: Self.pause) {
            let (gate, context) = bound.value
            gate.isPausing = false
            guard context.channel.isActive else { return }
            gate.read(context: context)
        }
    }

    /// The descriptor number that the next connection would get.
    private static func lowestFreeDescriptor(_ context: ChannelHandlerContext) -> CInt {
        do {
            let number = try context.channel.pipeline.syncOperations
                .withUnsafeTransportIfAvailable(of: NIOBSDSocket.Handle.self) {
                    tc_lowest_free_descriptor($0)
                }
            return number ?? 0
        } catch {
            return 0  // The listener has been closed.
        }
    }
}
