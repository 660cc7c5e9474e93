import HTTPTypes
import NIOCore
import NIOEmbedded
import NIOSSL
import NIOTLS
import TestParts
import Testing

@testable import HTTPTransport

/// The handler between a socket and the exchanges that use it.
@Suite("What a connection reads and writes", .tags(.realTime), .timeLimit(.minutes(10)))
struct ConnectionHandlerTests {
    /// What the socket sees: requests and reads.
    private final class Socket: ChannelOutboundHandler {
        typealias OutboundIn = ByteBuffer

        var reads = 0
        var requests: [String] = []
        /// As TLS does until the peer has closed too.
        var keepsOpen = false

        func close(
            context: ChannelHandlerContext,
            mode: CloseMode,
            promise: EventLoopPromise<Void>?
        ) {
            guard !keepsOpen else { return }
            context.close(mode: mode, promise: promise)
        }

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
    private let pool: ConnectionPool
    private let handler: ConnectionHandler
    private let receiver = RecordingReceiver()
    private let request: OutgoingRequest

    init() throws {
        request = try OutgoingRequest(
            HTTPRequest(method: .get, scheme: "http", authority: "origin.example", path: "/"),
            to: ConnectionPeer(socket: "/origin", keeping: receiver),
            content: .none,
            connectTimeout: .seconds(1)
        )
        let services = ProcessServices(
            addresses: { $1.makeFailedFuture(HostIsUnknown(name: $0.name)) },
            startThread: { _ in false },
            mayKeep: { _ in true }
        )
        let loop = channel.embeddedEventLoop
        let security = ConnectionSecurity(additionalTrustRoots: [], services: services, home: loop)
        let connector = Connector(services: services, security: security)
        pool = ConnectionPool(on: loop, connector: connector, capacity: 1)
        handler = ConnectionHandler(peer: request.peer, pool: pool)
        try channel.pipeline.syncOperations.addHandlers(socket, handler)
        try channel.connect(to: SocketAddress(ipAddress: "127.0.0.1", port: 80)).wait()
        let isOpen = pool.didMake(handler)
        #expect(isOpen)
        handler.begin(request, for: receiver)
        socket.reads = 0
    }

    private struct HostIsUnknown: Error {
        let name: String
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

    @Test("A response that comes within one read is handed over as a whole")
    func whole() {
        #expect(socket.requests == ["GET / HTTP/1.1\r\nHost: localhost\r\n\r\n"])
        receive("HTTP/1.1 102 Processing\r\n\r\n" + head(length: 3) + "ab")
        receive("c")
        #expect(receiver.calls == ["send", "interim 102"])
        endRead()
        #expect(receiver.calls == ["send", "interim 102", "whole 200 abc"])
        #expect(channel.isActive)
        pool.start(request, for: RecordingReceiver())
        #expect(socket.requests.count == 2)
    }

    @Test("The rest of a short response is waited for, but no longer than 20 ms")
    func shortResponse() {
        receive(head(length: 4) + "ab")
        endRead()
        #expect(receiver.calls == ["send"])
        receive("c")
        endRead()
        channel.embeddedEventLoop.advanceTime(by: .milliseconds(19))
        #expect(receiver.calls == ["send"])
        channel.embeddedEventLoop.advanceTime(by: .milliseconds(1))
        #expect(receiver.calls == ["send", "head 200", "part abc", "read"])
        receive("d")
        endRead()
        #expect(receiver.calls.suffix(2) == ["part d", "end"])
        let next = RecordingReceiver()
        pool.start(request, for: next)
        receive(head(length: 2) + "a")
        endRead()
        receive("b")
        endRead()
        #expect(next.calls == ["send", "whole 200 ab"])
        // The timer of the one before does not end the wait for this one.
        let last = RecordingReceiver()
        pool.start(request, for: last)
        receive(head(length: 2) + "a")
        endRead()
        channel.embeddedEventLoop.advanceTime(by: .milliseconds(19))
        #expect(last.calls == ["send"])
    }

    @Test("Nothing is waited for where the length is unknown or large")
    func longResponse() {
        receive(head(length: 64 << 10 | 1))
        endRead()
        #expect(receiver.calls == ["send", "head 200", "read"])
        let rest = ByteBuffer(repeating: UInt8(ascii: "a"), count: 64 << 10 | 1)
        receive(rest)
        endRead()
        #expect(receiver.calls.suffix(2) == ["part \(String(buffer: rest))", "end"])
        let next = RecordingReceiver()
        pool.start(request, for: next)
        receive("HTTP/1.1 200 OK\r\nTransfer-Encoding: chunked\r\n\r\n1\r\na\r\n")
        endRead()
        #expect(next.calls == ["send", "head 200", "part a", "read"])
    }

    @Test("What has been gathered of a response that is cut is handed over before its failure")
    func gatheredBeforeFailure() {
        receive(head(length: 4) + "ab")
        endRead()
        channel.pipeline.syncOperations.fireChannelInactive()
        #expect(receiver.calls == ["send", "head 200", "part ab", "closedEarly"])
    }

    @Test("A read waits while the receiver is full, and goes on once it is not")
    func backPressure() {
        receive(head(length: 1 << 20))
        ask()
        #expect(socket.reads == 1)
        receiver.isFull = true
        ask()
        #expect(socket.reads == 1)
        receiver.isFull = false
        receiver.resumeReading?()
        channel.embeddedEventLoop.run()
        #expect(socket.reads == 2)
    }

    @Test("An idle connection reads, whatever its last receiver still holds")
    func idle() {
        receive(head(length: 1))
        receiver.isFull = true
        ask()
        #expect(socket.reads == 0)
        receive("c")
        endRead()
        #expect(socket.reads == 1)
        ask()
        #expect(socket.reads == 2)
    }

    @Test("An end behind an error may be a cut, and is none")
    func broken() {
        receive("HTTP/1.1 200 OK\r\n\r\nab")
        channel.pipeline.syncOperations.fireErrorCaught(NIOSSLError.uncleanShutdown)
        channel.pipeline.syncOperations.fireChannelInactive()
        #expect(receiver.calls == ["send", "head 200", "part ab", "closedEarly"])
    }

    @Test("Bytes for an exchange that was cancelled are dropped, and its connection is closed")
    func cancelled() {
        receive(head(length: 2))
        endRead()
        receiver.cancel?()
        channel.embeddedEventLoop.run()
        receive("ab")
        #expect(receiver.calls == ["send"])
        #expect(!channel.isActive)
    }

    @Test("A request that nobody wants is not sent")
    func unwanted() {
        receive(head(length: 0))
        endRead()
        let unwanted = RecordingReceiver()
        unwanted.isWanted = false
        pool.start(request, for: unwanted)
        #expect(socket.requests.count == 1)
        #expect(unwanted.calls == ["send"])
        #expect(!channel.isActive)
    }

    @Test("A cancel of an exchange that has ended spares the next one on its connection")
    func cancelledLate() {
        receive(head(length: 0))
        endRead()
        let next = RecordingReceiver()
        pool.start(request, for: next)
        receiver.cancel?()
        channel.embeddedEventLoop.run()
        #expect(channel.isActive)
        receive(head(length: 0))
        endRead()
        #expect(next.calls == ["send", "whole 200 "])
    }

    @Test("What follows a response unasked closes the connection; the response is complete")
    func unsolicited() {
        receive(head(length: 0) + "HTTP")
        endRead()
        channel.embeddedEventLoop.run()
        #expect(!channel.isActive)
        #expect(receiver.calls == ["send", "whole 200 "])
    }

    @Test("A head that comes to an idle connection closes it")
    func headWhileIdle() {
        receive(head(length: 0))
        endRead()
        receive(head(length: 0))
        channel.embeddedEventLoop.run()
        #expect(!channel.isActive)
    }

    @Test("A connection that the peer wants to close is closed")
    func closeField() {
        receive(head(length: 0, "Connection: close\r\n"))
        endRead()
        channel.embeddedEventLoop.run()
        #expect(!channel.isActive)
        #expect(receiver.calls == ["send", "whole 200 "])
    }

    @Test("A connection that was idle for a minute is closed, and not before")
    func idleness() {
        let loop = channel.embeddedEventLoop
        receive(head(length: 0))
        endRead()
        loop.advanceTime(by: .seconds(59))
        pool.start(request, for: RecordingReceiver())
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

    @Test("Nothing of a connection of TLS is left once it has closed", arguments: [true, false])
    func released(isOpen: Bool) throws {
        weak var left: ConnectionHandler?
        do {
            let channel = EmbeddedChannel()
            let handler = ConnectionHandler(peer: request.peer, pool: pool)
            left = handler
            try channel.pipeline.syncOperations.addHandler(handler)
            try channel.connect(to: SocketAddress(ipAddress: "127.0.0.1", port: 443)).wait()
            let opened = handler.open(isSecure: true, until: .now() + .seconds(10))
            if isOpen {
                channel.pipeline.syncOperations.fireUserInboundEventTriggered(
                    TLSUserEvent.handshakeCompleted(negotiatedProtocol: nil)
                )
                _ = try opened?.wait()
            }
            try channel.close().wait()
            channel.embeddedEventLoop.run()
        }
        #expect(left == nil)
    }

    @Test("A pool that is closed fails what is under way and what comes, and waits for the end")
    func shutdown() throws {
        let closed = pool.close()
        #expect(!channel.isActive)
        channel.embeddedEventLoop.run()
        try closed.wait()
        let late = RecordingReceiver()
        pool.start(request, for: late)
        #expect(receiver.calls == ["send", "shutDown"])
        #expect(late.calls == ["shutDown"])
    }

    @Test("An exchange fails at once when the pool is closed, however long its connection takes")
    func slowShutdown() {
        receive(head(length: 4) + "ab")
        endRead()
        socket.keepsOpen = true
        _ = pool.close()
        #expect(channel.isActive)
        #expect(receiver.calls == ["send", "head 200", "part ab", "shutDown"])
        receive("cd")
        endRead()
        channel.pipeline.syncOperations.fireChannelInactive()
        #expect(receiver.calls.count == 4)
    }
}

/// Notes what it is told.
private final class RecordingReceiver: ResponseReceiver, @unchecked Sendable {
    // Unchecked: used on the one thread of a test.
    var calls: [String] = []
    var isFull = false
    var isWanted = true
    var cancel: (@Sendable () -> Void)?
    var resumeReading: (@Sendable () -> Void)?

    func willSend(
        from localAddress: String?,
        cancel: @escaping @Sendable () -> Void
    ) -> Bool {
        self.cancel = cancel
        calls.append("send")
        return isWanted
    }

    func didReceiveInterim(_ head: HTTPResponse) {
        calls.append("interim \(head.status.code)")
    }

    func didReceiveWhole(_ head: HTTPResponse, _ body: ByteBuffer) {
        calls.append("whole \(head.status.code) \(String(buffer: body))")
    }

    func didReceive(_ head: HTTPResponse) {
        calls.append("head \(head.status.code)")
    }

    func didReceive(_ part: ByteBuffer) {
        calls.append("part \(String(buffer: part))")
    }

    func didCompleteRead() {
        calls.append("read")
    }

    func hold(_ resumeReading: @escaping @Sendable () -> Void) -> Bool {
        self.resumeReading = resumeReading
        return true
    }

    func didReceiveEnd() {
        calls.append("end")
    }

    func didFail(_ error: ExchangeError) {
        calls.append("\(error.kind)")
    }
}
