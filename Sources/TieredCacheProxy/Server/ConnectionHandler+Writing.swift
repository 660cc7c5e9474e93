import HTTPTypes
import NIOCore
import NIOHTTP1

#if canImport(Glibc)
import Glibc
#elseif canImport(Darwin)
import Darwin
#endif

// What goes to the client.
extension ConnectionHandler {
    /// How a head is written for the present exchange.
    private func connection(persists: Bool) -> ResponseHead.Connection {
        ResponseHead.Connection(
            isHTTP10: exchange?.request.head.version == .http1_0,
            persists: persists,
            date: server.date.now
        )
    }

    /// Whether the connection can be used after an answer with this framing.
    private func persists(_ framing: ResponseHead.Framing, _ request: ServerRequest) -> Bool {
        guard !isLast, request.keepsAlive, exchange?.isRequestComplete == true else { return false }
        // Without chunks only the end of the connection ends the body.
        return framing != .unknown || request.head.version == .http1_1 || request.isHead
    }

    func writeInterim(_ head: ResponseHead) -> EventLoopFuture<Void> {
        guard let context, let exchange, exchange.answer == nil else {
            return server.failedFuture(ConnectionFailure.misuse)
        }
        guard exchange.request.head.version == .http1_1 else {
            return context.eventLoop.makeSucceededVoidFuture()
        }
        var buffer = context.channel.allocator.buffer(capacity: 256)
        head.encode(into: &buffer, connection(persists: true))
        return context.writeAndFlush(wrapOutboundOut(.byteBuffer(buffer)))
    }

    /// Writes the head and sends it off.
    func writeHead(_ head: ResponseHead) -> EventLoopFuture<Void> {
        let result = enqueueHead(head)
        context?.flush()
        return result
    }

    @discardableResult
    func enqueueHead(_ head: ResponseHead) -> EventLoopFuture<Void> {
        guard let context, let bytes = beginAnswer(head) else {
            return server.failedFuture(ConnectionFailure.misuse)
        }
        enqueue(bytes, context)
        return context.eventLoop.makeSucceededVoidFuture()
    }

    /// Writes bytes of a head, which are all of the answer if nothing follows.
    func enqueue(_ bytes: ByteBuffer, _ context: ChannelHandlerContext) {
        let done = context.eventLoop.makePromise(of: Void.self)
        context.write(wrapOutboundOut(.byteBuffer(bytes)), promise: done)
        exchange?.answer?.lastWrite = done.futureResult
    }

    /// Notes that the answer has begun.
    ///
    /// - Returns: the head's bytes, to be written; nil if there is nothing to be answered.
    func beginAnswer(_ head: ResponseHead) -> ByteBuffer? {
        guard let context, let exchange, exchange.answer == nil else { return nil }
        let persists = persists(head.framing, exchange.request)
        var buffer = context.channel.allocator.buffer(capacity: 768)
        head.encode(into: &buffer, connection(persists: persists))
        var answer = Answer(
            framing: exchange.request.isHead ? .none : head.framing,
            persists: persists,
            missing: nil,
            lastWrite: context.eventLoop.makeSucceededVoidFuture()
        )
        if case .length(let length) = answer.framing { answer.missing = length }
        self.exchange?.answer = answer
        return buffer
    }

    /// Writes a piece of the body; done when it has gone to the socket.
    func writeBody(_ bytes: ByteBuffer) -> EventLoopFuture<Void> {
        guard let context, let answer = exchange?.answer else {
            return server.failedFuture(ConnectionFailure.misuse)
        }
        let count = Int64(bytes.readableBytes)
        // The answer to a HEAD, a 304 or a 204 has no body.
        guard answer.framing != .none, count > 0 else { return answer.lastWrite }
        guard beginPiece(count, context) else {
            return server.failedFuture(ConnectionFailure.misuse)
        }
        let done = context.eventLoop.makePromise(of: Void.self)
        context.write(wrapOutboundOut(.byteBuffer(bytes)), promise: done)
        endPiece(context)
        let bound = NIOLoopBound(self, eventLoop: context.eventLoop)
        done.futureResult.whenSuccess { bound.value.didWrite() }
        exchange?.answer?.lastWrite = done.futureResult
        return done.futureResult
    }

    /// Whether each piece of the present answer says how long it is.
    private var isChunked: Bool {
        exchange?.answer?.framing == .unknown && exchange?.request.head.version == .http1_1
    }

    /// Counts a piece of the body, and writes what goes before it.
    ///
    /// - Returns: false if the answer was not to be that long; it is cut then.
    func beginPiece(_ count: Int64, _ context: ChannelHandlerContext) -> Bool {
        guard let missing = exchange?.answer?.missing else {
            if isChunked {
                let size = ByteBuffer(string: String(count, radix: 16) + "\r\n")
                context.write(wrapOutboundOut(.byteBuffer(size)), promise: nil)
            }
            return true
        }
        guard count <= missing else {
            cut()
            return false
        }
        exchange?.answer?.missing = missing - count
        return true
    }

    /// Writes what goes behind a piece of the body, and sends everything off.
    func endPiece(_ context: ChannelHandlerContext) {
        if isChunked {
            context.write(wrapOutboundOut(.byteBuffer(ByteBuffer(string: "\r\n"))), promise: nil)
        }
        context.flush()
    }

    /// Ends the body; done when all of it has gone to the socket.
    func finishAnswer() -> EventLoopFuture<Void> {
        guard let context, let answer = exchange?.answer else {
            return server.failedFuture(ConnectionFailure.misuse)
        }
        guard answer.missing ?? 0 == 0 else {
            cut()
            return server.failedFuture(ConnectionFailure.misuse)
        }
        var lastWrite = answer.lastWrite
        if isChunked {
            let end = ByteBuffer(string: "0\r\n\r\n")
            lastWrite = context.writeAndFlush(wrapOutboundOut(.byteBuffer(end)))
        } else {
            context.flush()
        }
        guard answer.persists else { return endConnection(after: lastWrite) }
        let bound = NIOLoopBound(self, eventLoop: context.eventLoop)
        let number = exchange?.number
        // Not before: a client that does not read must not make us queue answers, and what goes
        // past the queue (`sendAtOnce`) must not overtake what waits in it.
        return lastWrite.map {
            let connection = bound.value
            guard connection.currentNumber == number else { return }
            connection.exchange = nil
            connection.openNext()
        }
    }

    /// Writes head and body in one system call.
    func writeWhole(_ answer: WholeAnswer) -> EventLoopFuture<Void> {
        guard let context else { return server.failedFuture(ConnectionFailure.closed) }
        let begun = enqueueHead(answer.head)
        guard exchange?.answer != nil else { return begun }
        let isEmpty =
            answer.body.readableBytes == 0 || exchange?.answer?.framing == ResponseHead.Framing.none
        if isEmpty { context.flush() } else { _ = writeBody(answer.body) }
        return finishAnswer()
    }

    private func openNext() {
        guard !isLast else {
            context?.close(promise: nil)
            return
        }
        gate.openForNext()
    }

    // MARK: Ends

    /// Refuses a request that was not understood, and closes.
    func refuse(_ refusal: RequestRefusal) {
        guard let context, !isEnding else { return }
        guard exchange?.answer == nil else { return cut() }
        abandon(.closed)
        var buffer = context.channel.allocator.buffer(capacity: 256)
        let body = "\(refusal.status) \(refusal.description)\n"
        let head = ResponseHead(
            status: refusal.status,
            fields: [.contentType: "text/plain"],
            framing: .length(Int64(body.utf8.count))
        )
        head.encode(into: &buffer, connection(persists: false))
        buffer.writeString(body)
        let written = context.writeAndFlush(wrapOutboundOut(.byteBuffer(buffer)))
        _ = endConnection(after: written)
    }

    /// Drops the connection in the middle of an answer, so that the client sees that it is cut.
    func cut() {
        guard let context, !isEnding else { return }
        isEnding = true
        let isCloseDelimited =
            exchange?.answer?.framing == .unknown && exchange?.request.head.version == .http1_0
        abandon(.closed)
        guard isCloseDelimited else { return context.close(promise: nil) }
        // An orderly end would look like the end of the body.
        context.channel.closeWithReset()
    }

    /// Ends the connection in order: what was written arrives, what the client still sends is
    /// dropped, since unread bytes would turn the end into a reset that eats the answer.
    private func endConnection(after written: EventLoopFuture<Void>) -> EventLoopFuture<Void> {
        guard let context, !isEnding else { return written }
        isEnding = true
        gate.stop()
        exchange?.task = nil
        let bound = NIOLoopBound(self, eventLoop: context.eventLoop)
        return written.always { _ in
            let connection = bound.value
            connection.abandon(.closed)
            connection.drain()
        }
    }

    private func drain() {
        guard let context else { return }
        context.close(mode: .output, promise: nil)
        context.channel.setOption(.autoRead, value: true).whenComplete { _ in }
        let channel = context.channel
        context.eventLoop.scheduleTask(in: .seconds(1)) { channel.close(promise: nil) }
    }
}

extension Channel {
    /// Closes so that the peer sees a reset.
    fileprivate func closeWithReset() {
        let channel = self
        guard let options = channel as? any SocketOptionProvider else {
            return channel.close(promise: nil)
        }
        options.setSoLinger(linger(l_onoff: 1, l_linger: 0))
            .whenComplete { _ in channel.close(promise: nil) }
    }
}
