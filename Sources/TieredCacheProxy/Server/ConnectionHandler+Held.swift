import NIOCore
import TieredCache

// Answers from what is held, without a task: one piece after the other, each when the one before has
// gone to the socket.
extension ConnectionHandler {
    /// Writes an answer; the first piece goes out with the head.
    func writeHeld(_ answer: HeldAnswer) {
        enqueueHead(answer.head)
        guard let number = currentNumber, exchange?.answer != nil else { return }
        // The answer to a HEAD ends with its head.
        guard exchange?.answer?.framing != ResponseHead.Framing.none, !answer.range.isEmpty else {
            context?.flush()
            _ = finishAnswer()
            return
        }
        writePiece(of: answer, at: answer.range.lowerBound, number)
    }

    private func writePiece(of answer: HeldAnswer, at offset: Int64, _ number: UInt64) {
        guard let context, currentNumber == number, !isEnding else { return }
        let written: EventLoopFuture<Void>
        let end: Int64
        switch answer.piece(at: offset, context.channel.allocator) {
        case .copied(let bytes):
            end = offset + Int64(bytes.readableBytes)
            written = writeBody(bytes)
        case .lent(let bytes):
            end = bytes.range.upperBound
            written = writeFile(bytes)
        case nil:
            context.flush()
            return startTask { await answer.goOn(offset, ResponseWriter(connection: $0)) }
        }
        guard end < answer.range.upperBound else {
            _ = finishAnswer()
            return
        }
        let bound = NIOLoopBound(self, eventLoop: context.eventLoop)
        let loop = context.eventLoop
        written.whenSuccess {
            // Later, so that a client that takes everything at once does not keep the others waiting.
            loop.execute { bound.value.writePiece(of: answer, at: end, number) }
        }
    }

    /// Has the kernel send bytes from a file; done when they have gone to the socket.
    private func writeFile(_ bytes: LentBytes) -> EventLoopFuture<Void> {
        guard let context, let answer = exchange?.answer else {
            return server.failedFuture(ConnectionFailure.misuse)
        }
        let count = bytes.range.upperBound - bytes.range.lowerBound
        exchange?.answer?.missing = answer.missing.map { $0 - count }
        let handle = NIOFileHandle(_deprecatedTakingOwnershipOfDescriptor: bytes.descriptor)
        let region = FileRegion(
            fileHandle: handle,
            readerIndex: Int(bytes.place.lowerBound),
            endIndex: Int(bytes.place.upperBound)
        )
        let done = context.eventLoop.makePromise(of: Void.self)
        lent = bytes
        let bound = NIOLoopBound(self, eventLoop: context.eventLoop)
        done.futureResult.whenComplete { result in
            bound.value.fileTimer?.stop()
            bound.value.lent = nil
            withExtendedLifetime(bytes) { Self.letGo(handle) }
            if case .success = result { bound.value.didWrite() }
        }
        context.writeAndFlush(wrapOutboundOut(.fileRegion(region)), promise: done)
        // Mostly all of it has gone by now.
        if lent != nil { watch(context) }
        exchange?.answer?.lastWrite = done.futureResult
        return done.futureResult
    }

    /// Looks now and then whether there still is something to be sent.
    ///
    /// Whoever truncates a file of the cache leaves the kernel with nothing to send, again and again.
    private func watch(_ context: ChannelHandlerContext) {
        if fileTimer == nil {
            fileTimer = ConnectionTimer(eventLoop: context.eventLoop) { [unowned self] in
                guard let lent else { return }
                guard lent.isThere else { return cut() }
                fileTimer?.start(Self.watchInterval)
            }
        }
        fileTimer?.start(Self.watchInterval)
    }

    private static let watchInterval = Duration.seconds(2)

    /// Ends the handle's life and not the descriptor's, which is the cache's.
    private static func letGo(_ handle: NIOFileHandle) {
        do {
            _ = try handle.takeDescriptorOwnership()
        } catch {
            assertionFailure("a handle that nobody else has is in use: \(error)")
        }
    }
}
