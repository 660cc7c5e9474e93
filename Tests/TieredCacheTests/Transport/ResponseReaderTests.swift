#if HTTPClient
import HTTPTypes
import NIOCore
import NIOEmbedded
import NIOHTTP1
import Testing

@testable import TieredCache

/// The handler between a connection and the exchange that asked.
@Suite("What is read off a connection", .timeLimit(.minutes(10)))
struct ResponseReaderTests {
    /// What the socket sees: requests and reads.
    private final class Socket: ChannelOutboundHandler {
        typealias OutboundIn = HTTPClientRequestPart

        var reads = 0
        var requests: [HTTPRequestHead] = []

        func read(context: ChannelHandlerContext) { reads += 1 }

        func write(
            context: ChannelHandlerContext,
            data: NIOAny,
            promise: EventLoopPromise<Void>?
        ) {
            if case .head(let head) = unwrapOutboundIn(data) { requests.append(head) }
            promise?.succeed()
        }
    }

    /// What the library sees of a response.
    private final class Library: ChannelInboundHandler {
        typealias InboundIn = HTTPClientResponsePart

        var heads: [HTTPResponseHead] = []
        var bodies = 0
        var ends = 0
        var errors = 0

        func channelRead(context: ChannelHandlerContext, data: NIOAny) {
            switch unwrapInboundIn(data) {
            case .head(let head): heads.append(head)
            case .body: bodies += 1
            case .end: ends += 1
            }
        }

        func errorCaught(context: ChannelHandlerContext, error: any Error) { errors += 1 }
    }

    private let channel = EmbeddedChannel()
    private let socket = Socket()
    private let library = Library()
    private let exchange = AsyncHTTPClientExchange()

    init() throws {
        try channel.pipeline.syncOperations.addHandlers(socket, ResponseReader())
        try channel.pipeline.syncOperations.addHandler(library)
        var head = HTTPRequestHead(version: .http1_1, method: .GET, uri: "/")
        head.headers.add(name: ResponseReader.fieldName, value: PendingExchanges.keep(exchange))
        // From above the reader, as the library writes.
        let reader = try channel.pipeline.syncOperations.context(handlerType: ResponseReader.self)
        try reader.writeAbove(head)
        socket.reads = 0
    }

    private func receive(_ part: HTTPClientResponsePart) {
        channel.pipeline.syncOperations.fireChannelRead(NIOAny(part))
    }

    private func ask() throws {
        let reader = try channel.pipeline.syncOperations.context(handlerType: ResponseReader.self)
        reader.readAbove()
    }

    private var head: HTTPClientResponsePart {
        .head(HTTPResponseHead(version: .http1_1, status: .ok))
    }

    @Test("A body goes into the exchange; the library sees its head and its end")
    func body() async throws {
        #expect(socket.requests.map { $0.headers.count } == [0])
        receive(.head(HTTPResponseHead(version: .http1_1, status: .processing)))
        receive(head)
        receive(.body(ByteBuffer(string: "ab")))
        receive(.body(ByteBuffer(string: "c")))
        receive(.end(nil))
        #expect(library.heads.map(\.status) == [.processing, .ok])
        #expect(library.bodies == 0)
        #expect(library.ends == 1)
        #expect(try await exchange.head().status == .ok)
        #expect(try await exchange.nextPart() == ByteBuffer(string: "ab"))
        #expect(try await exchange.nextPart() == ByteBuffer(string: "c"))
        #expect(try await exchange.nextPart() == nil)
    }

    @Test("A read waits while the exchange is full, and goes on once it is not")
    func backPressure() async throws {
        receive(head)
        try ask()
        #expect(socket.reads == 1)
        let piece = ByteBuffer(repeating: 7, count: ExchangeState.readAhead / 2)
        receive(.body(piece))
        try ask()
        #expect(socket.reads == 2)
        receive(.body(piece))
        try ask()
        #expect(socket.reads == 2)
        // What comes all the same, because the peer has closed, is kept.
        receive(.body(piece))
        _ = try await exchange.nextPart()
        channel.embeddedEventLoop.run()
        #expect(socket.reads == 2)
        _ = try await exchange.nextPart()
        channel.embeddedEventLoop.run()
        #expect(socket.reads == 3)
        #expect(try await exchange.nextPart() == piece)
    }

    @Test("An idle connection reads, whatever its last exchange still holds")
    func idle() async throws {
        receive(head)
        let piece = ByteBuffer(repeating: 7, count: ExchangeState.readAhead)
        receive(.body(piece))
        try ask()
        #expect(socket.reads == 0)
        receive(.end(nil))
        #expect(socket.reads == 1)
        try ask()
        #expect(socket.reads == 2)
        #expect(try await exchange.nextPart() == piece)
        #expect(try await exchange.nextPart() == nil)
    }

    @Test("An end behind an error may be a cut: the library is asked")
    func broken() async throws {
        receive(head)
        receive(.body(ByteBuffer(string: "ab")))
        channel.pipeline.syncOperations.fireErrorCaught(ChannelError.inputClosed)
        receive(.end(nil))
        #expect(library.errors == 1)
        #expect(try await exchange.nextPart() == ByteBuffer(string: "ab"))
        let next = Task { [exchange] in try await exchange.nextPart() }
        exchange.cancel()
        await #expect(throws: TransportError.self) { _ = try await next.value }
    }

    @Test("Bytes for an exchange that was cancelled are dropped")
    func cancelled() async throws {
        receive(head)
        exchange.cancel()
        receive(.body(ByteBuffer(string: "ab")))
        let error = await #expect(throws: TransportError.self) {
            _ = try await exchange.nextPart()
        }
        #expect(error?.kind == .cancelled)
        #expect(!exchange.isFull)
    }
}

extension ChannelHandlerContext {
    /// Writes as a handler above this one would.
    fileprivate func writeAbove(_ head: HTTPRequestHead) throws {
        let handler = try #require(handler as? ResponseReader)
        handler.write(context: self, data: NIOAny(HTTPClientRequestPart.head(head)), promise: nil)
    }

    /// Asks for a read as a handler above this one would.
    fileprivate func readAbove() {
        (handler as? ResponseReader)?.read(context: self)
    }
}
#endif
