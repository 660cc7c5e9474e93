#if HTTPClient
import HTTPTransport
import HTTPTypes
import NIOCore
import NIOEmbedded
import NIOSSL
import TestParts
import Testing

@testable import TieredCache

/// The handler between a socket and the exchanges that use it.
@Suite("What a connection reads and writes", .tags(.realTime), .timeLimit(.minutes(10)))
struct ConnectionHandlerTests {
    /// What the socket sees: requests and reads.
    private final class Socket: ChannelOutboundHandler {
        typealias OutboundIn = ByteBuffer

        var reads = 0
        var requests: [String] = []

        func read(context: ChannelHandlerContext) { reads += 1 }

        func write(
            context: ChannelHandlerContext,
            data: NIOAny,
            promise: EventLoopPromise<Void>?
        ) {
            requests.append(String(buffer: unwrapOutboundIn(data)))
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

    private func receive(_ text: String) { receive(ByteBuffer(string: text)) }

    private func receive(_ bytes: ByteBuffer) {
        channel.pipeline.syncOperations.fireChannelRead(NIOAny(bytes))
    }

    private func endRead() {
        channel.pipeline.syncOperations.fireChannelReadComplete()
    }

    private func ask() { channel.pipeline.read() }

    private func head(length: Int, _ fields: String = "") -> String {
        "HTTP/1.1 200 OK\r\nContent-Length: \(length)\r\n\(fields)\r\n"
    }

    @Test("A head, a body and an end go into the exchange; the next request follows")
    func body() async throws {
        #expect(socket.requests == ["GET / HTTP/1.1\r\nHost: origin.example\r\n\r\n"])
        receive("HTTP/1.1 102 Processing\r\n\r\n" + head(length: 3) + "ab")
        receive("c")
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
        receive(head(length: 1 << 20))
        ask()
        #expect(socket.reads == 1)
        let piece = ByteBuffer(repeating: 7, count: ExchangeState.readAhead / 2)
        receive(piece)
        ask()
        #expect(socket.reads == 2)
        receive(piece)
        ask()
        #expect(socket.reads == 2)
        // What comes all the same, because the peer has closed, is kept.
        receive(piece)
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
        receive(head(length: ExchangeState.readAhead + 1))
        let piece = ByteBuffer(repeating: 7, count: ExchangeState.readAhead)
        receive(piece)
        ask()
        #expect(socket.reads == 0)
        receive("c")
        endRead()
        #expect(socket.reads == 1)
        ask()
        #expect(socket.reads == 2)
        #expect(try await exchange.nextPart() == piece)
        #expect(try await exchange.nextPart() == ByteBuffer(string: "c"))
        #expect(try await exchange.nextPart() == nil)
    }

    @Test("An end behind an error may be a cut, and is none")
    func broken() async throws {
        receive("HTTP/1.1 200 OK\r\n\r\nab")
        channel.pipeline.syncOperations.fireErrorCaught(NIOSSLError.uncleanShutdown)
        channel.pipeline.syncOperations.fireChannelInactive()
        channel.embeddedEventLoop.run()
        #expect(try await exchange.nextPart() == ByteBuffer(string: "ab"))
        let error = await #expect(throws: TransportError.self) {
            _ = try await exchange.nextPart()
        }
        #expect(error?.kind == .closedEarly)
    }

    @Test("Bytes for an exchange that was cancelled are dropped, and its connection is closed")
    func cancelled() async throws {
        receive(head(length: 2))
        exchange.cancel()
        receive("ab")
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
        receive(head(length: 0))
        endRead()
        let next = Exchange()
        try pool.start(request, for: next)
        exchange.cancel()
        channel.embeddedEventLoop.run()
        #expect(channel.isActive)
        receive(head(length: 0))
        endRead()
        #expect(try await next.head().status == .ok)
    }

    @Test("What follows a response unasked closes the connection; the response is complete")
    func unsolicited() async throws {
        receive(head(length: 0) + "HTTP")
        endRead()
        channel.embeddedEventLoop.run()
        #expect(!channel.isActive)
        #expect(try await exchange.head().status == .ok)
        #expect(try await exchange.nextPart() == nil)
    }

    @Test("A head that comes to an idle connection closes it")
    func headWhileIdle() throws {
        receive(head(length: 0))
        endRead()
        receive(head(length: 0))
        channel.embeddedEventLoop.run()
        #expect(!channel.isActive)
    }

    @Test("A connection that the peer wants to close is closed")
    func closeField() async throws {
        receive(head(length: 0, "Connection: close\r\n"))
        endRead()
        channel.embeddedEventLoop.run()
        #expect(!channel.isActive)
        #expect(try await exchange.nextPart() == nil)
    }

    @Test("A connection that was idle for a minute is closed, and not before")
    func idleness() throws {
        let loop = channel.embeddedEventLoop
        receive(head(length: 0))
        endRead()
        loop.advanceTime(by: .seconds(59))
        try pool.start(request, for: Exchange())
        // The timer of the first idle time finds it at work.
        loop.advanceTime(by: .seconds(2))
        #expect(channel.isActive)
        receive(head(length: 0))
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
    private static func head(_ text: String = "HTTP/1.1 200 OK\r\n") throws -> ResponseHead {
        var parser = ResponseParser()
        parser.begin(.head)
        parser.add(ByteBuffer(string: text + "\r\n"))
        guard case .head(let head)? = try parser.next() else { throw ConnectionClosed() }
        return head
    }

    /// A connection on which a request was sent, or only begun.
    private static func exchanging(isAlone: Bool = false, isSent: Bool = true) -> ConnectionState {
        var state = ConnectionState()
        #expect(state.begin(isAlone: isAlone) == true)
        if isSent { state.didSendRequest() }
        return state
    }

    private static func end(of state: ConnectionState) throws -> ConnectionState.EndAction? {
        var state = state
        state.didReceive(try head())
        state.didReceiveEnd()
        return state.didCompleteRead()
    }

    @Test("A connection is kept where both sides want that, and the request is out")
    func kept() throws {
        #expect(try Self.end(of: Self.exchanging()) == .keep)
        #expect(try Self.end(of: Self.exchanging(isAlone: true)) == .close)
        #expect(try Self.end(of: Self.exchanging(isSent: false)) == .close)
        for text in ["HTTP/1.0 200 OK\r\n", "HTTP/1.1 101 Switching Protocols\r\n"] {
            var state = Self.exchanging()
            state.didReceive(try Self.head(text))
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

    @Test("A close fails an exchange that has not ended, with what went wrong before")
    func closed() throws {
        var idle = ConnectionState()
        #expect(idle.didClose() == nil)
        var cut = Self.exchanging()
        #expect(cut.didClose() is ConnectionClosed)
        var broken = Self.exchanging()
        #expect(broken.didFail(ChannelError.inputClosed) == true)
        broken.didReceiveEnd()
        #expect(broken.didCompleteRead() == nil)
        #expect(broken.didClose() as? ChannelError == .inputClosed)
        var ended = Self.exchanging()
        ended.didReceive(try Self.head())
        ended.didReceiveEnd()
        #expect(ended.didClose() == nil)
    }
}
#endif
