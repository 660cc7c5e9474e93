import NIOCore
import NIOEmbedded
import Testing

@testable import TieredCacheProxy

/// What keeps a connection open.
@Suite("The gate of a connection", .timeLimit(.minutes(10)))
struct RequestGateTests {
    private func connection(_ limits: ServerLimits) throws -> EmbeddedChannel {
        let loop = EmbeddedEventLoop()
        let channel = EmbeddedChannel(handler: RequestGate(limits: limits), loop: loop)
        channel.connect(to: try SocketAddress(ipAddress: "127.0.0.1", port: 9), promise: nil)
        return channel
    }

    @Test("Empty lines do not keep a connection open")
    func emptyLines() throws {
        let limits = ServerLimits()
        let channel = try connection(limits)
        for _ in 0..<3 {
            channel.embeddedEventLoop.advanceTime(by: .seconds(20))
            #expect(channel.isActive)
            try channel.writeInbound(ByteBuffer(string: "\r\n"))
        }
        channel.embeddedEventLoop.advanceTime(by: .seconds(20))
        #expect(!channel.isActive)
    }

    @Test("After an answer there is all of the time again, and a head has its own")
    func afterAnAnswer() throws {
        let channel = try connection(ServerLimits())
        let gate = try channel.pipeline.syncOperations.handler(type: RequestGate.self)
        for _ in 0..<3 {
            channel.embeddedEventLoop.advanceTime(by: .seconds(70))
            try channel.writeInbound(ByteBuffer(string: "\r\nGET / HTTP/1.1\r\nHost: a\r\n\r\n"))
            channel.embeddedEventLoop.advanceTime(by: .seconds(200))
            #expect(channel.isActive)
            gate.openForNext()
        }
        channel.embeddedEventLoop.advanceTime(by: .seconds(74))
        #expect(channel.isActive)
        channel.embeddedEventLoop.advanceTime(by: .seconds(1))
        #expect(!channel.isActive)
    }
}
