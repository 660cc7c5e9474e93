import FoundationEssentials
import Logging
import NIOCore
import NIOEmbedded
import NIOHTTP1
import Testing
import TieredCache

@testable import TieredCacheProxy

@Suite("A connection of the server", .timeLimit(.minutes(10)))
struct ConnectionHandlerTests {
    /// A socket that takes nothing before it is told to.
    private final class FullSocket: ChannelOutboundHandler {
        typealias OutboundIn = IOData

        private(set) var waiting: [EventLoopPromise<Void>?] = []

        func write(context: ChannelHandlerContext, data: NIOAny, promise: EventLoopPromise<Void>?) {
            waiting.append(promise)
        }

        func flush(context: ChannelHandlerContext) {}

        func takeAll() {
            let taken = waiting
            waiting = []
            for promise in taken { promise?.succeed(()) }
        }
    }

    /// Answers everything at once, without a body.
    private struct HeadResponder: Responder {
        func immediateResponse(to request: ServerRequest) -> PendingResponse? {
            PendingResponse(
                head: ResponseHead(status: 200, framing: .length(0)),
                bytes: .memory(Data()),
                range: 0..<0,
                goOn: { _, _ in }
            )
        }

        func respond(
            to request: ServerRequest,
            body: RequestBody,
            with writer: ResponseWriter
        ) async {}
    }

    @Test(
        "The next request is not begun before an answer without a body has gone to the socket",
        arguments: [HTTPMethod.HEAD, .GET]
    )
    func headsAreWaitedFor(_ method: HTTPMethod) throws {
        let loop = EmbeddedEventLoop()
        let socket = FullSocket()
        let server = ServerContext(
            responder: HeadResponder(),
            limits: ServerLimits(),
            logger: Logger(label: "test"),
            group: loop
        )
        let handler = ConnectionHandler(server: server, gate: RequestGate(limits: ServerLimits()))
        let channel = EmbeddedChannel(handlers: [socket, handler], loop: loop)
        let head = HTTPRequestHead(
            version: .http1_1,
            method: method,
            uri: "/a",
            headers: ["host": "a"]
        )
        try channel.writeInbound(HTTPServerRequestPart.head(head))
        try channel.writeInbound(HTTPServerRequestPart.end(nil))
        #expect(socket.waiting.count == 1)
        #expect(handler.currentNumber == 1)
        socket.takeAll()
        #expect(handler.currentNumber == nil)
        _ = try channel.finish(acceptAlreadyClosed: true)
    }

    @Test(
        "A response that is sent without a wait pauses, so that the loop serves other connections"
    )
    func pauses() throws {
        let loop = EmbeddedEventLoop()
        let server = ServerContext(
            responder: HeadResponder(),
            limits: ServerLimits(),
            logger: Logger(label: "test"),
            group: loop
        )
        let handler = ConnectionHandler(server: server, gate: RequestGate(limits: ServerLimits()))
        // The socket takes nothing, so the exchange goes on.
        let channel = EmbeddedChannel(handlers: [FullSocket(), handler], loop: loop)
        let head = HTTPRequestHead(
            version: .http1_1,
            method: .GET,
            uri: "/a",
            headers: ["host": "a"]
        )
        try channel.writeInbound(HTTPServerRequestPart.head(head))
        try channel.writeInbound(HTTPServerRequestPart.end(nil))
        let ended = Counted()
        func send(_ count: Int64) {
            handler.pause(after: count).whenSuccess { ended.count += 1 }
            loop.run()
        }
        for _ in 0..<3 { send(64 << 10) }
        #expect(ended.count == 3)
        send(64 << 10)
        #expect(ended.count == 3)
        loop.advanceTime(by: .milliseconds(1))
        #expect(ended.count == 4)
        send(64 << 10)
        #expect(ended.count == 5)
        _ = try channel.finish(acceptAlreadyClosed: true)
    }

    /// Confined to the loop of the test.
    private final class Counted: @unchecked Sendable {
        var count = 0
    }
}
