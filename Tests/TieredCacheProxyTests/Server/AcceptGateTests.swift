import NIOCore
import NIOEmbedded
import Testing

@testable import TieredCacheProxy

/// A listener whose descriptors run out.
@Suite("The gate of a listener", .timeLimit(.minutes(10)))
struct AcceptGateTests {
    /// Counts what reaches the socket.
    private final class Reads: ChannelOutboundHandler {
        typealias OutboundIn = Never
        var count = 0

        func read(context: ChannelHandlerContext) { count += 1 }
    }

    /// What the gate asks.
    private final class Room {
        var isThere = true
        var calls = 0
    }

    private let table = Room()
    private let reads = Reads()
    private let channel: EmbeddedChannel

    init() throws {
        let room = table
        let gate = AcceptGate(hasRoom: { _ in room.isThere }, makeRoom: { room.calls += 1 })
        channel = EmbeddedChannel(handlers: [reads, gate], loop: EmbeddedEventLoop())
        channel.connect(to: try SocketAddress(ipAddress: "127.0.0.1", port: 9), promise: nil)
        reads.count = 0
    }

    @Test("Where there is room, each read goes through")
    func room() {
        channel.read()
        channel.read()
        #expect(reads.count == 2 && table.calls == 0)
    }

    @Test("Where there is none, it looks again by and by, and asks those that are there to leave")
    func fullTable() {
        table.isThere = false
        channel.read()
        channel.read()
        #expect(reads.count == 0 && table.calls == 1)
        for _ in 0..<5 { channel.embeddedEventLoop.advanceTime(by: AcceptGate.pause) }
        #expect(reads.count == 0 && table.calls == 6)
        table.isThere = true
        channel.embeddedEventLoop.advanceTime(by: AcceptGate.pause)
        #expect(reads.count == 1)
        channel.read()
        #expect(reads.count == 2)
    }

    @Test("An accept that fails is not tried again at once")
    func failingAccept() {
        channel.pipeline.fireErrorCaught(IOError(errnoCode: 24, reason: "accept"))
        // What SwiftNIO does after each failure.
        for _ in 0..<100 { channel.read() }
        #expect(reads.count == 0)
        channel.embeddedEventLoop.advanceTime(by: AcceptGate.pause)
        #expect(reads.count == 1)
    }
}
