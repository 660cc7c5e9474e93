import DequeModule
import NIOCore
import NIOHTTP1
import NIOWebSocket
import OrderedCollections
import TieredCacheProxy

/// A WebSocket of a client: messages in the order in which they come, and notifications.
///
/// States: open → closing, after a close of either side. Confined to the event loop.
final class AgentSocket: ChannelInboundHandler {
    typealias InboundIn = WebSocketFrame
    typealias OutboundOut = WebSocketFrame

    /// The most downloads of which a client that does not read is told later.
    static let maximumWaiting = 4096

    /// The notification that all that waited for an attached client has been told.
    static let drained = "tieredcache.onSessionDrained"
    /// The names of all notifications.
    static let notifications = DownloadEvent.allCases.map(\.rawValue) + [drained]
    /// The most notifications that wait for the answer to a first call.
    private static let maximumEarly = 64

    private let calls: AgentCalls
    private let attachment: AgentAttachment
    private let agent: Agent
    private var context: ChannelHandlerContext?
    private var watcher: UInt64?
    private var work: Task<Void, Never>?
    /// What came in one read with what is being answered.
    private var messages = Deque<ByteBuffer>()
    /// Whether the client has shown that it may be told of downloads.
    private var isTrusted: Bool
    private var isClosing = false
    /// What the first call has brought about, until it has turned out to know the secret.
    private var early: [DownloadNotification] = []
    /// Whether there were more.
    private var hasMissed = false
    /// What could not be written yet: the newest of each download, in order.
    private var waiting = OrderedDictionary<GID, DownloadNotification>()
    /// The results of the session that have to be told before, and the rank of the last.
    private var results = Deque<(gid: GID, event: DownloadEvent)>()
    private var rank = Int64.min
    /// Whether an attached client is told that nothing waits any more.
    private var owesDrained = false

    private init(calls: AgentCalls, agent: Agent) {
        attachment = AgentAttachment()
        var calls = calls
        calls.methods.attachment = attachment
        self.calls = calls
        self.agent = agent
        isTrusted = calls.secret == nil
    }

    /// What makes a connection a WebSocket.
    static func upgrade(
        _ head: HTTPRequestHead,
        calls: AgentCalls,
        agent: Agent
    ) -> ConnectionUpgrade {
        ConnectionUpgrade { channel in
            let upgrader = NIOWebSocketServerUpgrader(
                shouldUpgrade: { channel, _ in channel.eventLoop.makeSucceededFuture([:]) },
                upgradePipelineHandler: { channel, _ in channel.eventLoop.makeSucceededVoidFuture()
                }
            )
            return upgrader.buildUpgradeResponse(
                channel: channel,
                upgradeRequest: head,
                initialResponseHeaders: [:]
            )
        } install: { channel in
            try channel.pipeline.syncOperations.addHandlers([
                WebSocketFrameEncoder(),
                ByteToMessageHandler(
                    WebSocketFrameDecoder(maxFrameSize: AgentHandler.maximumMessage)
                ),
                WebSocketProtocolErrorHandler(),
                AgentFrameGuard(),
                NIOWebSocketFrameAggregator(
                    minNonFinalFragmentSize: 0,
                    maxAccumulatedFrameCount: 1024,
                    maxAccumulatedFrameSize: AgentHandler.maximumMessage
                ),
                AgentSocket(calls: calls, agent: agent),
            ])
        }
    }

    func handlerAdded(context: ChannelHandlerContext) {
        self.context = context
        let bound = NIOLoopBound(self, eventLoop: context.eventLoop)
        let loop = context.eventLoop
        watcher = agent.addWatcher { notification in
            loop.execute { bound.value.tell(notification) }
        }
    }

    func handlerRemoved(context: ChannelHandlerContext) {
        if let watcher { agent.removeWatcher(watcher) }
        watcher = nil
        work?.cancel()
        self.context = nil
        if let session = attachment.close() {
            let agent = agent
            Task { await agent.detach(session) }
        }
    }

    func channelInactive(context: ChannelHandlerContext) {
        work?.cancel()
        context.fireChannelInactive()
    }

    func userInboundEventTriggered(context: ChannelHandlerContext, event: Any) {
        switch event {
        case is ServerStopEvent: end(.goingAway)
        case is AgentFrameGuard.Violation: end(.protocolError)
        case ChannelEvent.inputClosed: context.close(promise: nil)
        default: context.fireUserInboundEventTriggered(event)
        }
    }

    func errorCaught(context: ChannelHandlerContext, error: any Error) {
        // The handler before has told the client of an error of the protocol.
        if error is NIOWebSocketFrameAggregator.Error {
            end(.messageTooLarge)
        } else {
            context.close(promise: nil)
        }
    }

    // MARK: Frames

    func channelRead(context: ChannelHandlerContext, data: NIOAny) {
        let frame = unwrapInboundIn(data)
        guard !isClosing else { return }
        switch frame.opcode {
        case .text, .binary:
            messages.append(frame.unmaskedData)
            answerNext()
        case .ping:
            write(.pong, frame.unmaskedData)
        case .connectionClose:
            var data = frame.unmaskedData
            let code = data.readSlice(length: 2) ?? ByteBuffer()
            isClosing = true
            write(.connectionClose, code)
            context.close(mode: .output, promise: nil)
            closeSoon()
        default:
            break
        }
    }

    func channelReadComplete(context: ChannelHandlerContext) {
        context.fireChannelReadComplete()
        readNext()
    }

    /// Reads on when all that has come is answered.
    private func readNext() {
        guard work == nil, messages.isEmpty, !isClosing else { return }
        context?.read()
    }

    private func answerNext() {
        guard work == nil, !isClosing, let context, let message = messages.popFirst() else {
            return
        }
        let bytes = Array(message.readableBytesView)
        let bound = NIOLoopBound(self, eventLoop: context.eventLoop)
        let (loop, calls) = (context.eventLoop, calls)
        work = Task {
            let (reply, knowsSecret) = await calls.reply(to: RPCMessage(bytes))
            loop.execute { bound.value.finish(reply, knowsSecret: knowsSecret) }
        }
    }

    private func finish(_ reply: RPCReply, knowsSecret: Bool) {
        guard let context, !isClosing else { return }
        if knowsSecret { isTrusted = true }
        let told = isTrusted ? early : []
        // It learns at once that there was more than it is told.
        if isTrusted, hasMissed { return context.close(promise: nil) }
        (early, hasMissed) = ([], false)
        let frame = WebSocketFrame(fin: true, opcode: .text, data: ByteBuffer(bytes: reply.body))
        let bound = NIOLoopBound(self, eventLoop: context.eventLoop)
        // The next message is read when the client has taken this answer.
        context.writeAndFlush(wrapOutboundOut(frame)).whenComplete { _ in
            bound.value.work = nil
            bound.value.answerNext()
            bound.value.readNext()
        }
        for notification in told { tell(notification) }
        guard let attached = attachment.takeResults() else { return pump() }
        waiting.removeAll { $0.value.session != attached.name }
        results = Deque(attached.results.map { ($0.key, $0.value.event) })
        (rank, owesDrained) = (attached.rank, true)
        pump()
    }

    private func write(_ opcode: WebSocketOpcode, _ data: ByteBuffer) {
        let frame = WebSocketFrame(fin: true, opcode: opcode, data: data)
        context?.writeAndFlush(wrapOutboundOut(frame), promise: nil)
    }

    private func end(_ code: WebSocketErrorCode) {
        guard let context, !isClosing else { return }
        isClosing = true
        var data = context.channel.allocator.buffer(capacity: 2)
        data.write(webSocketErrorCode: code)
        write(.connectionClose, data)
        closeSoon()
    }

    /// Gives the client a second to close its side.
    private func closeSoon() {
        guard let channel = context?.channel else { return }
        context?.read()
        channel.eventLoop.scheduleTask(in: .seconds(1)) { channel.close(promise: nil) }
    }

    // MARK: Notifications

    private func tell(_ notification: DownloadNotification) {
        guard let context, !isClosing else { return }
        guard isTrusted else {
            guard work != nil else { return }
            if early.count < Self.maximumEarly {
                early.append(notification)
            } else {
                hasMissed = true
            }
            return
        }
        if let session = attachment.session, notification.session != session { return }
        let isFirst = results.isEmpty && waiting.isEmpty && !attachment.isAttaching
        if notification.isLast, attachment.session != nil { owesDrained = true }
        if isFirst, context.channel.isWritable {
            send(notification)
            return pump()
        }
        waiting.removeValue(forKey: notification.gid)
        waiting[notification.gid] = notification
        if attachment.session != nil { owesDrained = true }
        if waiting.count > Self.maximumWaiting { context.close(promise: nil) }
    }

    /// Sends what waits, as long as the client takes it.
    private func pump() {
        guard let context, !isClosing, !attachment.isAttaching else { return }
        while context.channel.isWritable {
            if let result = results.popFirst() {
                send(result.event.message(about: result.gid))
            } else if !waiting.isEmpty {
                send(waiting.removeFirst().value)
            } else if owesDrained, let session = attachment.session {
                owesDrained = false
                send([
                    "jsonrpc": "2.0", "method": .string(Self.drained),
                    "params": [["session": .string(session)]],
                ])
            } else {
                return
            }
        }
    }

    func channelWritabilityChanged(context: ChannelHandlerContext) {
        pump()
        context.fireChannelWritabilityChanged()
    }

    private func send(_ notification: DownloadNotification) {
        // One of an attached session, written before it was told of its results, is among them.
        if let own = notification.rank, own <= rank { return }
        send(notification.value)
    }

    private func send(_ message: JSONValue) {
        write(.text, ByteBuffer(bytes: message.encoded))
    }
}
