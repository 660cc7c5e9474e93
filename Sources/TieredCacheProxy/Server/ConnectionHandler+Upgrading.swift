import HTTPTypes
package import NIOCore
package import NIOHTTP1

/// What a connection becomes in the place of a response: another protocol (RFC 9110 §7.8).
package struct ConnectionUpgrade: Sendable {
    /// Gives the fields of the 101 response; fails for a request that is none of the protocol's.
    let fields: @Sendable (any Channel) -> EventLoopFuture<HTTPHeaders>
    /// Adds the handlers of the protocol, on the event loop; they read by themselves.
    let install: @Sendable (any Channel) throws -> Void

    /// Creates an upgrade.
    package init(
        fields: @escaping @Sendable (any Channel) -> EventLoopFuture<HTTPHeaders>,
        install: @escaping @Sendable (any Channel) throws -> Void
    ) {
        self.fields = fields
        self.install = install
    }
}

extension ConnectionHandler {
    /// Answers with 101 and leaves the connection to the handlers of the protocol.
    func become(_ upgrade: ConnectionUpgrade) {
        guard let context else { return }
        let bound = NIOLoopBound(self, eventLoop: context.eventLoop)
        let number = currentNumber
        // In a later tick: the parser is still at work on the request.
        context.eventLoop.submit {}.flatMap { upgrade.fields(bound.value.channel) }
            .whenComplete { result in
                let connection = bound.value
                guard connection.currentNumber == number, !connection.isEnding else { return }
                switch result {
                case .success(let fields): connection.finish(upgrade, with: fields)
                case .failure: connection.refuse(.malformed("the upgrade"))
                }
            }
    }

    private var channel: any Channel {
        guard let context else { preconditionFailure("upgraded without a connection") }
        return context.channel
    }

    private func finish(_ upgrade: ConnectionUpgrade, with fields: HTTPHeaders) {
        guard let context else { return }
        let channel = context.channel
        var buffer = channel.allocator.buffer(capacity: 256)
        buffer.writeStaticString("HTTP/1.1 101 Switching Protocols\r\n")
        for (name, value) in fields { buffer.writeString("\(name): \(value)\r\n") }
        buffer.writeStaticString("\r\n")
        context.writeAndFlush(wrapOutboundOut(.byteBuffer(buffer)), promise: nil)
        isEnding = true
        let rest = gate.release()
        abandon(.closed)
        let operations = channel.pipeline.syncOperations
        do {
            let parser = try operations.context(
                handlerType: ByteToMessageHandler<HTTPRequestDecoder>.self
            )
            let removed = [
                operations.removeHandler(context: parser),
                operations.removeHandler(context: try operations.context(handler: gate)),
                operations.removeHandler(context: context),
            ]
            EventLoopFuture.andAllSucceed(removed, on: channel.eventLoop)
                .flatMapThrowing {
                    try upgrade.install(channel)
                    if let rest { channel.pipeline.fireChannelRead(rest) }
                    channel.pipeline.read()
                }
                .whenFailure { _ in channel.close(promise: nil) }
        } catch {
            channel.close(promise: nil)  // A handler was missing, so the connection had ended.
        }
    }
}
