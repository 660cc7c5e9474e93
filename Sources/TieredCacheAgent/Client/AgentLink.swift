import NIOCore
import NIOHTTP1
import NIOPosix
import NIOWebSocket
import TieredCache

/// A WebSocket to an agent: calls that are answered in order, and what the agent tells.
final class AgentLink: Sendable {
    /// How long the agent may take for an answer.
    static let patience = TimeAmount.seconds(30)
    /// How often the progress of what runs is asked for.
    static let interval = TimeAmount.milliseconds(500)
    /// The longest answer that is read.
    static let maximumAnswer = 64 << 20

    enum News: Hashable, Sendable {
        case download(DownloadID)
        /// Some time has passed.
        case tick
    }

    /// What there is to look at; ends with the connection.
    let news: AsyncStream<News>
    private let handler: NIOLoopBound<AgentLinkHandler>

    private init(_ handler: AgentLinkHandler, on loop: any EventLoop, news: AsyncStream<News>) {
        self.news = news
        self.handler = NIOLoopBound(handler, eventLoop: loop)
    }

    /// Begins a WebSocket on a connection, which is closed where that fails.
    ///
    /// - Throws: ``CacheError`` with `.interrupted` where the other side does not speak it.
    static func open(on descriptor: CInt) async throws(CacheError) -> AgentLink {
        let group = SignalMask.blocking { MultiThreadedEventLoopGroup.singleton }
        do {
            let upgraded = try await ClientBootstrap(group: group)
                .withConnectedSocket(descriptor) { channel in
                    channel.eventLoop.makeCompletedFuture {
                        let late = channel.eventLoop.scheduleTask(in: patience) {
                            channel.close(promise: nil)
                        }
                        let upgraded = try begin(on: channel)
                        upgraded.whenComplete { _ in late.cancel() }
                        channel.closeFuture.whenComplete { _ in late.cancel() }
                        return upgraded
                    }
                }
            return try await upgraded.get()
        } catch {
            throw CacheError(
                .interrupted,
                "the agent does not answer; try again",
                cause: error as? CacheError == nil ? error : nil
            )
        }
    }

    private static func begin(on channel: any Channel) throws -> EventLoopFuture<AgentLink> {
        let upgrader = NIOTypedWebSocketClientUpgrader<AgentLink>(
            maxFrameSize: maximumAnswer
        ) { channel, _ in
            channel.eventLoop.makeCompletedFuture {
                let (news, continuation) = AsyncStream.makeStream(of: News.self)
                let handler = AgentLinkHandler(news: continuation)
                try channel.pipeline.syncOperations.addHandlers([
                    NIOWebSocketFrameAggregator(
                        minNonFinalFragmentSize: 0,
                        maxAccumulatedFrameCount: 1024,
                        maxAccumulatedFrameSize: maximumAnswer
                    ),
                    handler,
                ])
                return AgentLink(handler, on: channel.eventLoop, news: news)
            }
        }
        var head = HTTPRequestHead(version: .http1_1, method: .GET, uri: AgentHandler.path)
        head.headers.add(name: "Host", value: "localhost")
        let configuration = NIOTypedHTTPClientUpgradeConfiguration<AgentLink>(
            upgradeRequestHead: head,
            upgraders: [upgrader]
        ) { channel in
            channel.eventLoop.makeFailedFuture(ChannelError.inputClosed)
        }
        return try channel.pipeline.syncOperations.configureUpgradableHTTPClientPipeline(
            configuration: NIOUpgradableHTTPClientPipelineConfiguration(
                upgradeConfiguration: configuration
            )
        )
    }

    /// Calls a method.
    ///
    /// - Throws: ``CacheError``: `.invalidArgument` where the agent refuses, `.interrupted` where
    ///   the connection ends first, `.timedOut` where there is no answer.
    func call(
        _ method: String,
        _ parameters: [JSONValue] = []
    ) async throws(CacheError) -> JSONValue {
        let promise = handler.eventLoop.makePromise(of: JSONValue.self)
        onLoop { $0.call(method, parameters, promise) }
        do {
            return try await promise.futureResult.get()
        } catch {
            throw error as? CacheError ?? AgentLinkHandler.lost
        }
    }

    /// Has a download looked at soon.
    func look(at id: DownloadID) { onLoop { $0.tell(.download(id)) } }

    func close() { onLoop { $0.close() } }

    private func onLoop(_ body: @escaping @Sendable (AgentLinkHandler) -> Void) {
        handler.eventLoop.execute { [handler] in body(handler.value) }
    }
}

/// Confined to the event loop.
private final class AgentLinkHandler: ChannelInboundHandler {
    typealias InboundIn = WebSocketFrame
    typealias OutboundOut = WebSocketFrame

    static let lost = CacheError(.interrupted, "the connection to the agent has ended; try again")

    private let news: AsyncStream<AgentLink.News>.Continuation
    private var context: ChannelHandlerContext?
    private var calls: [Int64: (promise: EventLoopPromise<JSONValue>, limit: Scheduled<Void>)] = [:]
    private var lastCall: Int64 = 0
    private var ticks: RepeatedTask?

    init(news: AsyncStream<AgentLink.News>.Continuation) {
        self.news = news
    }

    func tell(_ what: AgentLink.News) { news.yield(what) }

    func close() { context?.close(promise: nil) }

    func handlerAdded(context: ChannelHandlerContext) {
        self.context = context
        let interval = AgentLink.interval
        ticks = context.eventLoop.scheduleRepeatedTask(initialDelay: interval, delay: interval) {
            [news] _ in news.yield(.tick)
        }
    }

    func handlerRemoved(context: ChannelHandlerContext) {
        self.context = nil
        ticks?.cancel()
        news.finish()
        for call in calls.values {
            call.limit.cancel()
            call.promise.fail(Self.lost)
        }
        calls = [:]
    }

    func errorCaught(context: ChannelHandlerContext, error: any Error) {
        context.close(promise: nil)
    }

    // MARK: Calls

    func call(_ method: String, _ parameters: [JSONValue], _ promise: EventLoopPromise<JSONValue>) {
        guard let context else { return promise.fail(Self.lost) }
        lastCall += 1
        let id = lastCall
        let bound = NIOLoopBound(self, eventLoop: context.eventLoop)
        let limit = context.eventLoop.scheduleTask(in: AgentLink.patience) {
            // What comes behind it would come late as well.
            bound.value.end(id, .failure(CacheError(.timedOut, "the agent does not answer")))
            bound.value.close()
        }
        calls[id] = (promise, limit)
        let message: JSONValue = [
            "jsonrpc": "2.0", "id": .integer(id), "method": .string(method),
            "params": .array(parameters),
        ]
        write(.text, ByteBuffer(bytes: message.encoded))
    }

    private func end(_ id: Int64, _ result: Result<JSONValue, CacheError>) {
        guard let call = calls.removeValue(forKey: id) else { return }
        call.limit.cancel()
        switch result {
        case .success(let value): call.promise.succeed(value)
        case .failure(let error): call.promise.fail(error)
        }
    }

    private func write(_ opcode: WebSocketOpcode, _ data: ByteBuffer) {
        let frame = WebSocketFrame(fin: true, opcode: opcode, maskKey: .random(), data: data)
        context?.writeAndFlush(wrapOutboundOut(frame), promise: nil)
    }

    func channelRead(context: ChannelHandlerContext, data: NIOAny) {
        let frame = unwrapInboundIn(data)
        switch frame.opcode {
        case .text: take(Array(frame.unmaskedData.readableBytesView))
        case .ping: write(.pong, frame.unmaskedData)
        case .connectionClose: context.close(promise: nil)
        default: break
        }
    }

    private func take(_ bytes: [UInt8]) {
        let message: JSONValue
        do throws(JSONReader.Failure) {
            message = try JSONReader.value(of: bytes)
        } catch {
            return close()
        }
        if let id = message["id"]?.integer {
            if let result = message["result"] { return end(id, .success(result)) }
            let text = message["error"]?["message"]?.string ?? "no reason"
            end(id, .failure(CacheError(.invalidArgument, "the agent refuses: \(text)")))
        } else if let text = message["params"]?.array?.first?["gid"]?.string,
            let id = DownloadID(text)
        {
            tell(.download(id))
        }
    }
}
