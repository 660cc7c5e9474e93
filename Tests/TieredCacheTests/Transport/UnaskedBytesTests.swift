#if HTTPClient
import NIOCore
import NIOEmbedded
import NIOHTTP1
import Testing

@testable import TieredCache

/// The handler between what a socket brings and who asks for it.
@Suite("Bytes that came unasked", .timeLimit(.minutes(10)))
struct UnaskedBytesTests {
    /// Passes a read on only when told to, as a consumer that takes its time; notes what comes.
    private final class Consumer: ChannelDuplexHandler {
        typealias InboundIn = ByteBuffer
        typealias OutboundIn = NIOAny

        var isGreedy = false
        var events: [String] = []
        private var isReadHeld = false

        func channelRead(context: ChannelHandlerContext, data: NIOAny) {
            events.append(String(buffer: unwrapInboundIn(data)))
        }

        func channelReadComplete(context: ChannelHandlerContext) {
            events.append("complete")
        }

        func errorCaught(context: ChannelHandlerContext, error: any Error) {
            events.append("\(error)")
        }

        func channelInactive(context: ChannelHandlerContext) {
            events.append("inactive")
        }

        func userInboundEventTriggered(context: ChannelHandlerContext, event: Any) {
            events.append("event \(event)")
        }

        func read(context: ChannelHandlerContext) {
            if isGreedy { context.read() } else { isReadHeld = true }
        }

        func ask(_ context: ChannelHandlerContext) { context.read() }

        func take() -> [String] {
            defer { events = [] }
            return events
        }
    }

    private struct Failure: Error, CustomStringConvertible {
        let description = "failure"
    }

    private let channel = EmbeddedChannel()
    private let consumer = Consumer()

    init() throws {
        try channel.pipeline.syncOperations.addHandlers(UnaskedBytes(), consumer)
        try channel.connect(to: SocketAddress(unixDomainSocketPath: "/peer")).wait()
        _ = consumer.take()
    }

    private func receive(_ parts: String...) {
        for part in parts { channel.pipeline.fireChannelRead(ByteBuffer(string: part)) }
        channel.pipeline.fireChannelReadComplete()
    }

    private func ask() throws {
        consumer.ask(try channel.pipeline.syncOperations.context(handler: consumer))
    }

    private func endInput() {
        channel.pipeline.fireUserInboundEventTriggered(ChannelEvent.inputClosed)
    }

    @Test("What was asked for passes, all of one read")
    func asked() throws {
        receive("a", "b")
        #expect(consumer.take() == ["a", "b", "complete"])
        try ask()
        receive("c")
        #expect(consumer.take() == ["c", "complete"])
    }

    @Test("What comes before it is asked for waits, a part for each question")
    func unasked() throws {
        receive("a")
        receive("b", "c")
        receive("d")
        #expect(consumer.take() == ["a", "complete"])
        for part in ["b", "c", "d"] {
            try ask()
            #expect(consumer.take() == [part, "complete"])
        }
    }

    @Test("Who asks as soon as something comes gets everything, in order")
    func greedy() throws {
        receive("a")
        for part in 0..<10_000 { receive("\(part)") }
        endInput()
        _ = consumer.take()
        consumer.isGreedy = true
        try ask()
        let parts = (0..<10_000).flatMap { ["\($0)", "complete"] }
        #expect(consumer.take() == parts + ["inactive"])
        #expect(!channel.isActive)
    }

    @Test("The end of the input closes the channel once all has been taken and more is asked for")
    func end() throws {
        receive("a")
        receive("b")
        endInput()
        #expect(consumer.take() == ["a", "complete"])
        #expect(channel.isActive)
        try ask()
        #expect(consumer.take() == ["b", "complete"])
        #expect(channel.isActive)
        try ask()
        #expect(consumer.take() == ["inactive"])
        #expect(!channel.isActive)
    }

    @Test("A connection on which nobody waits for anything else closes at once")
    func idle() {
        endInput()
        #expect(consumer.take() == ["inactive"])
        #expect(!channel.isActive)
    }

    @Test("An error comes after what came before it")
    func error() throws {
        receive("a")
        receive("b")
        channel.pipeline.fireErrorCaught(Failure())
        endInput()
        #expect(consumer.take() == ["a", "complete"])
        try ask()
        #expect(consumer.take() == ["b", "complete"])
        try ask()
        #expect(consumer.take() == ["failure", "inactive"])
    }

    @Test("An error where somebody waits passes at once")
    func errorAwaited() {
        channel.pipeline.fireErrorCaught(Failure())
        #expect(consumer.take() == ["failure"])
    }

    @Test("A channel that ends by itself gives out the rest, for nothing comes later")
    func reset() throws {
        receive("a")
        receive("b")
        receive("c")
        channel.pipeline.fireChannelInactive()
        #expect(consumer.take() == ["a", "complete", "b", "complete", "c", "complete", "inactive"])
    }

    @Test("Who closes gets nothing more")
    func close() throws {
        receive("a")
        receive("b")
        try channel.close().wait()
        #expect(consumer.take() == ["a", "complete", "inactive"])
    }

    @Test("Other events pass")
    func otherEvents() {
        channel.pipeline.fireUserInboundEventTriggered(ChannelEvent.outputClosed)
        #expect(consumer.take() == ["event outputClosed"])
    }
}
#endif
