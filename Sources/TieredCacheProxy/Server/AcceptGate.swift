import CLinuxCalls
import NIOCore
import TieredCache

/// Lets the listener accept while there are descriptors for it, and looks again a little later
/// where there are none.
///
/// What is not accepted waits in the kernel. Without that the last descriptor goes to a client, and
/// files, connections to origins and the runtime itself get none; and a listener whose `accept`
/// fails is ready again at once, which keeps a processor busy with nothing.
final class AcceptGate: ChannelDuplexHandler {
    typealias InboundIn = any Channel
    typealias InboundOut = any Channel
    typealias OutboundIn = Never

    /// How long it waits before it looks again.
    static let pause = TimeAmount.milliseconds(50)

    private let hasRoom: (ChannelHandlerContext) -> Bool
    private let makeRoom: () -> Void
    /// Whether a look is due, before which nothing is accepted.
    private var isPausing = false

    /// Creates the gate of one listener.
    ///
    /// - Parameters:
    ///   - hasRoom: whether one more may be accepted.
    ///   - makeRoom: asks those that are there to leave, because others wait.
    init(hasRoom: @escaping (ChannelHandlerContext) -> Bool, makeRoom: @escaping () -> Void) {
        self.hasRoom = hasRoom
        self.makeRoom = makeRoom
    }

    /// A gate that lets so many connections be open, and leaves the runtime its descriptors.
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
        // The table of the process or of the machine is full, or memory is short: `accept` failed,
        // and the listener stays as it is.
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

    /// The number that the next client's connection would get.
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
