import HTTPTypes
import NIOCore
import NIOHTTP1

#if canImport(Glibc)
import Glibc
#elseif canImport(Darwin)
import Darwin
#endif

// Writing to the client.
extension ConnectionHandler {
    /// The connection parameters for the head of the current exchange.
    private func connection(persists: Bool) -> ResponseHead.Connection {
        ResponseHead.Connection(
            isHTTP10: exchange?.request.head.version == .http1_0,
            persists: persists,
            date: server.date.now
        )
    }

    /// Whether the connection persists after a response with this framing.
    private func persists(framing: ResponseHead.Framing, request: ServerRequest) -> Bool {
        guard !isLast, request.keepsAlive, exchange?.isRequestComplete == true else { return false }
        // Without chunks only the end of the connection delimits the body.
        return framing != .unknown || request.head.version == .http1_1 || request.isHead
    }

    /// The most interim responses of an exchange, and of those the most that wait for a client that
    /// does not read; later ones are dropped.
    private static let maximumInterims = (all: 64, unsent: 8)

    /// Writes an interim response; drops it where it may not be sent.
    func writeInterim(_ head: ResponseHead) {
        guard let context, let exchange, exchange.answer == nil,
            exchange.request.head.version == .http1_1,
            exchange.interims.all < Self.maximumInterims.all,
            exchange.interims.unsent < Self.maximumInterims.unsent
        else { return }
        var buffer = context.channel.allocator.buffer(capacity: 256)
        head.encode(into: &buffer, connection: connection(persists: true))
        self.exchange?.interims.all += 1
        self.exchange?.interims.unsent += 1
        let bound = NIOLoopBound(self, eventLoop: context.eventLoop)
        context.writeAndFlush(wrapOutboundOut(.byteBuffer(buffer)))
            .whenComplete { _ in
                guard bound.value.currentNumber == exchange.number else { return }
                bound.value.exchange?.interims.unsent -= 1
            }
    }

    /// Writes the head, and flushes it with what the exchange writes in this tick of the loop.
    func writeHead(_ head: ResponseHead) -> EventLoopFuture<Void> {
        let result = enqueueHead(head)
        if let context {
            let bound = NIOLoopBound(self, eventLoop: context.eventLoop)
            // A body that is there is written before: both go to the socket in one call.
            context.eventLoop.execute { bound.value.context?.flush() }
        }
        return result
    }

    @discardableResult
    func enqueueHead(_ head: ResponseHead) -> EventLoopFuture<Void> {
        guard let context, let bytes = beginResponse(head) else {
            return server.failedFuture(ConnectionFailure.misuse)
        }
        enqueue(bytes, in: context)
        return context.eventLoop.makeSucceededVoidFuture()
    }

    /// Writes bytes of a head; they are the whole response if nothing follows.
    func enqueue(_ bytes: ByteBuffer, in context: ChannelHandlerContext) {
        let done = context.eventLoop.makePromise(of: Void.self)
        context.write(wrapOutboundOut(.byteBuffer(bytes)), promise: done)
        exchange?.answer?.lastWrite = done.futureResult
    }

    /// Records that the response has begun.
    ///
    /// - Returns: the bytes of the head, to be written; nil if there is no exchange to respond to.
    func beginResponse(_ head: ResponseHead) -> ByteBuffer? {
        guard let context, let exchange, exchange.answer == nil else { return nil }
        let persists = persists(framing: head.framing, request: exchange.request)
        var buffer = context.channel.allocator.buffer(capacity: 768)
        head.encode(into: &buffer, connection: connection(persists: persists))
        var answer = OutgoingResponse(
            framing: exchange.request.isHead ? .none : head.framing,
            persists: persists,
            missing: nil,
            lastWrite: context.eventLoop.makeSucceededVoidFuture()
        )
        if case .length(let length) = answer.framing { answer.missing = length }
        self.exchange?.answer = answer
        return buffer
    }

    /// The most bytes that are sent before the loop looks at its other connections.
    private static let maximumUnbroken: Int64 = 256 << 10
    /// Longer than nothing: a loop runs all that is due before it looks at a socket again.
    private static let pause = TimeAmount.microseconds(20)

    /// Completes at once, or a moment later where much has been sent since the last pause: bytes
    /// that are there and a client that takes them would keep the loop from all other connections.
    func pause(after count: Int64) -> EventLoopFuture<Void> {
        guard let context, let exchange else {
            return server.failedFuture(ConnectionFailure.closed)
        }
        let unbroken = exchange.unbroken + count
        let isDue = unbroken >= Self.maximumUnbroken
        self.exchange?.unbroken = isDue ? 0 : unbroken
        guard isDue else { return context.eventLoop.makeSucceededVoidFuture() }
        return context.eventLoop.scheduleTask(in: Self.pause) {}.futureResult
    }

    /// Writes a piece of the body; the future completes when it is written to the socket.
    func writeBody(_ bytes: ByteBuffer) -> EventLoopFuture<Void> {
        guard let context, let answer = exchange?.answer else {
            return server.failedFuture(ConnectionFailure.misuse)
        }
        let count = Int64(bytes.readableBytes)
        // The response to a HEAD, a 304 and a 204 have no body.
        guard answer.framing != .none, count > 0 else { return answer.lastWrite }
        guard beginPiece(length: count, in: context) else {
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

    /// Whether the current response is sent in chunks.
    private var isChunked: Bool {
        exchange?.answer?.framing == .unknown && exchange?.request.head.version == .http1_1
    }

    /// Counts a piece of the body, and writes its chunk header if there is one.
    ///
    /// - Returns: false if the response becomes longer than announced; it is cut off then.
    func beginPiece(length count: Int64, in context: ChannelHandlerContext) -> Bool {
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

    /// Writes the end of a chunk if there is one, and flushes.
    func endPiece(_ context: ChannelHandlerContext) {
        if isChunked {
            context.write(wrapOutboundOut(.byteBuffer(ByteBuffer(string: "\r\n"))), promise: nil)
        }
        context.flush()
    }

    /// Ends the body; the future completes when all of it is written to the socket.
    func finishResponse() -> EventLoopFuture<Void> {
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
        // Only then: responses to a client that does not read must not pile up, and bytes that
        // bypass the queue (`sendAtOnce`) must not overtake bytes in it.
        return lastWrite.map {
            let connection = bound.value
            guard connection.currentNumber == number else { return }
            connection.exchange = nil
            connection.openNext()
        }
    }

    /// Writes head and body in one system call.
    func writeWhole(_ answer: WholeResponse) -> EventLoopFuture<Void> {
        guard let context else { return server.failedFuture(ConnectionFailure.closed) }
        let begun = enqueueHead(answer.head)
        guard exchange?.answer != nil else { return begun }
        let isEmpty =
            answer.body.readableBytes == 0 || exchange?.answer?.framing == ResponseHead.Framing.none
        if isEmpty { context.flush() } else { _ = writeBody(answer.body) }
        return finishResponse()
    }

    private func openNext() {
        guard !isLast else {
            context?.close(promise: nil)
            return
        }
        gate.openForNext()
    }

    // MARK: Ends

    /// Refuses a malformed request, and closes the connection.
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
        head.encode(into: &buffer, connection: connection(persists: false))
        buffer.writeString(body)
        let written = context.writeAndFlush(wrapOutboundOut(.byteBuffer(buffer)))
        _ = endConnection(after: written)
    }

    /// Drops the connection in the middle of a response, so that the client sees that it is
    /// incomplete.
    func cut() {
        guard let context, !isEnding else { return }
        isEnding = true
        // The head may still wait for the end of this tick.
        context.flush()
        let isCloseDelimited =
            exchange?.answer?.framing == .unknown && exchange?.request.head.version == .http1_0
        abandon(.closed)
        guard isCloseDelimited else { return context.close(promise: nil) }
        // An orderly end would look like the end of the body.
        context.channel.closeWithReset()
    }

    /// Closes the connection gracefully: written bytes arrive, further input is read and dropped,
    /// because unread bytes would turn the close into a reset that discards the response.
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
        // RFC 9112 §9.6: close the own side, read on, and close for good a little later.
        context.close(mode: .output, promise: nil)
        context.channel.setOption(.autoRead, value: true).whenComplete { _ in }
        let channel = context.channel
        context.eventLoop.scheduleTask(in: .seconds(1)) { channel.close(promise: nil) }
    }
}

extension Channel {
    /// Closes with a reset.
    fileprivate func closeWithReset() {
        let channel = self
        guard let options = channel as? any SocketOptionProvider else {
            return channel.close(promise: nil)
        }
        // With a linger time of 0 close(2) sends RST (tcp(7), socket(7)).
        options.setSoLinger(linger(l_onoff: 1, l_linger: 0))
            .whenComplete { _ in channel.close(promise: nil) }
    }
}
