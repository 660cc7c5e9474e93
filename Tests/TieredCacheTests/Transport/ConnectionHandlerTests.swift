#if HTTPClient
import HTTPTypes
import NIOCore
import NIOEmbedded
import NIOHTTP1
import TestParts
import Testing

@testable import TieredCache

/// The handler between a socket and the exchanges that use it.
@Suite("What a connection reads and writes", .tags(.realTime), .timeLimit(.minutes(10)))
struct ConnectionHandlerTests {
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

    private let channel = EmbeddedChannel()
    private let socket = Socket()
    private let pool = ConnectionPool(additionalTrustRoots: [], lookups: .shared)
    private let handler: ConnectionHandler
    private let exchange = Exchange()
    private let request: OutgoingRequest

    init() throws {
        request = try OutgoingRequest(TransportCase.request("origin.example"))
        handler = ConnectionHandler(peer: request.peer, pool: pool)
        try channel.pipeline.syncOperations.addHandlers(socket, handler)
        try channel.connect(to: SocketAddress(ipAddress: "127.0.0.1", port: 80)).wait()
        #expect(try pool.didMake(#require(handler.connection)))
        handler.begin(request, for: exchange)
        socket.reads = 0
    }

    private func receive(_ part: HTTPClientResponsePart) {
        channel.pipeline.syncOperations.fireChannelRead(NIOAny(part))
    }

    private func endRead() {
        channel.pipeline.syncOperations.fireChannelReadComplete()
    }

    private func ask() { channel.pipeline.read() }

    private func head(_ fields: HTTPHeaders = [:]) -> HTTPClientResponsePart {
        .head(HTTPResponseHead(version: .http1_1, status: .ok, headers: fields))
    }

    @Test("A head, a body and an end go into the exchange; the next request follows")
    func body() async throws {
        #expect(socket.requests.map(\.uri) == ["/"])
        receive(.head(HTTPResponseHead(version: .http1_1, status: .processing)))
        receive(head())
        receive(.body(ByteBuffer(string: "ab")))
        receive(.body(ByteBuffer(string: "c")))
        receive(.end(nil))
        endRead()
        #expect(try await exchange.head().status == .ok)
        #expect(try await exchange.nextPart() == ByteBuffer(string: "ab"))
        #expect(try await exchange.nextPart() == ByteBuffer(string: "c"))
        #expect(try await exchange.nextPart() == nil)
        #expect(channel.isActive)
        try pool.start(request, for: Exchange())
        #expect(socket.requests.count == 2)
    }

    @Test("A read waits while the exchange is full, and goes on once it is not")
    func backPressure() async throws {
        receive(head())
        ask()
        #expect(socket.reads == 1)
        let piece = ByteBuffer(repeating: 7, count: ExchangeState.readAhead / 2)
        receive(.body(piece))
        ask()
        #expect(socket.reads == 2)
        receive(.body(piece))
        ask()
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
        receive(head())
        let piece = ByteBuffer(repeating: 7, count: ExchangeState.readAhead)
        receive(.body(piece))
        ask()
        #expect(socket.reads == 0)
        receive(.end(nil))
        endRead()
        #expect(socket.reads == 1)
        ask()
        #expect(socket.reads == 2)
        #expect(try await exchange.nextPart() == piece)
        #expect(try await exchange.nextPart() == nil)
    }

    @Test("An end behind an error may be a cut, and is none")
    func broken() async throws {
        receive(head())
        receive(.body(ByteBuffer(string: "ab")))
        channel.pipeline.syncOperations.fireErrorCaught(ChannelError.inputClosed)
        receive(.end(nil))
        channel.embeddedEventLoop.run()
        #expect(!channel.isActive)
        #expect(try await exchange.nextPart() == ByteBuffer(string: "ab"))
        let error = await #expect(throws: TransportError.self) {
            _ = try await exchange.nextPart()
        }
        #expect(error?.kind == .closedEarly)
    }

    @Test("Bytes for an exchange that was cancelled are dropped, and its connection is closed")
    func cancelled() async throws {
        receive(head())
        exchange.cancel()
        receive(.body(ByteBuffer(string: "ab")))
        let error = await #expect(throws: TransportError.self) {
            _ = try await exchange.nextPart()
        }
        #expect(error?.kind == .cancelled)
        #expect(!exchange.isFull)
        channel.embeddedEventLoop.run()
        #expect(!channel.isActive)
    }

    @Test("A cancel of an exchange that has ended spares the next one on its connection")
    func cancelledLate() async throws {
        receive(head())
        receive(.end(nil))
        endRead()
        let next = Exchange()
        try pool.start(request, for: next)
        exchange.cancel()
        channel.embeddedEventLoop.run()
        #expect(channel.isActive)
        receive(head())
        endRead()
        #expect(try await next.head().status == .ok)
    }

    @Test("What follows a response unasked closes the connection; the response is complete")
    func unsolicited() async throws {
        receive(head())
        receive(.end(nil))
        channel.pipeline.syncOperations.fireErrorCaught(NIOHTTPDecoderError.unsolicitedResponse)
        endRead()
        channel.embeddedEventLoop.run()
        #expect(!channel.isActive)
        #expect(try await exchange.head().status == .ok)
        #expect(try await exchange.nextPart() == nil)
    }

    @Test("A head that comes to an idle connection closes it")
    func headWhileIdle() throws {
        receive(head())
        receive(.end(nil))
        endRead()
        receive(head())
        channel.embeddedEventLoop.run()
        #expect(!channel.isActive)
    }

    @Test("A connection that the peer wants to close is closed")
    func closeField() async throws {
        receive(head(["Connection": "close"]))
        receive(.end(nil))
        endRead()
        channel.embeddedEventLoop.run()
        #expect(!channel.isActive)
        #expect(try await exchange.nextPart() == nil)
    }

    @Test("A connection that was idle for a minute is closed, and not before")
    func idleness() throws {
        let loop = channel.embeddedEventLoop
        receive(head())
        receive(.end(nil))
        endRead()
        loop.advanceTime(by: .seconds(59))
        try pool.start(request, for: Exchange())
        // The timer of the first idle time finds it at work.
        loop.advanceTime(by: .seconds(2))
        #expect(channel.isActive)
        receive(head())
        receive(.end(nil))
        endRead()
        loop.advanceTime(by: .seconds(59))
        #expect(channel.isActive)
        loop.advanceTime(by: .seconds(1))
        #expect(!channel.isActive)
    }
}

/// The decisions of a connection.
@Suite("Connection state", .timeLimit(.minutes(10)))
struct ConnectionStateTests {
    private static func head(
        _ status: HTTPResponseStatus,
        version: HTTPVersion = .http1_1
    ) -> HTTPResponseHead {
        HTTPResponseHead(version: version, status: status)
    }

    /// A connection on which a request was sent, or only begun.
    private static func exchanging(isAlone: Bool = false, isSent: Bool = true) -> ConnectionState {
        var state = ConnectionState()
        #expect(state.begin(isAlone: isAlone) == true)
        if isSent { state.didSendRequest() }
        return state
    }

    private static func end(of state: ConnectionState) -> ConnectionState.EndAction? {
        var state = state
        _ = state.didReceive(head(.ok))
        state.didReceiveEnd()
        return state.didCompleteRead()
    }

    @Test("A connection is kept where both sides want that, and the request is out")
    func kept() {
        #expect(Self.end(of: Self.exchanging()) == .keep)
        #expect(Self.end(of: Self.exchanging(isAlone: true)) == .close)
        #expect(Self.end(of: Self.exchanging(isSent: false)) == .close)
        for head in [Self.head(.ok, version: .http1_0), Self.head(.switchingProtocols)] {
            var state = Self.exchanging()
            #expect(state.didReceive(head) == .final)
            state.didReceiveEnd()
            #expect(state.didCompleteRead() == .close)
        }
    }

    @Test("One exchange at a time, and none after a failure")
    func begin() {
        var state = Self.exchanging()
        let isSecond = state.begin(isAlone: false)
        #expect(!isSecond)
        var failed = ConnectionState()
        #expect(failed.didFail(ConnectionClosed()) == true)
        let isAfter = failed.begin(isAlone: false)
        #expect(!isAfter)
    }

    @Test("Interim responses are counted, and impossible statuses refused")
    func heads() {
        var state = Self.exchanging()
        for _ in 0..<ConnectionState.maximumInterims {
            #expect(state.didReceive(Self.head(.continue)) == .interim)
        }
        #expect(state.didReceive(Self.head(.continue)) == .refuse)
        var other = Self.exchanging()
        #expect(other.didReceive(Self.head(.custom(code: 99, reasonPhrase: ""))) == .refuse)
        var idle = ConnectionState()
        #expect(idle.didReceive(Self.head(.ok)) == .refuse)
    }

    @Test("A close fails an exchange that has not ended, with what went wrong before")
    func closed() {
        var idle = ConnectionState()
        #expect(idle.didClose() == nil)
        var cut = Self.exchanging()
        #expect(cut.didClose() is ConnectionClosed)
        var broken = Self.exchanging()
        #expect(broken.didFail(HTTPParserError.invalidVersion) == true)
        #expect(broken.didReceive(Self.head(.ok)) == .ignore)
        broken.didReceiveEnd()
        #expect(broken.didCompleteRead() == nil)
        #expect(broken.didClose() as? HTTPParserError == .invalidVersion)
        var ended = Self.exchanging()
        _ = ended.didReceive(Self.head(.ok))
        ended.didReceiveEnd()
        #expect(ended.didClose() == nil)
    }
}
#endif
