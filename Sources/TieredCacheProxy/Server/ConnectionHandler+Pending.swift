import CLinuxCalls
import NIOCore
import TieredCache

// Answers from what is stored, without a task: one piece after the other, each when the one before
// has gone to the socket.
extension ConnectionHandler {
    /// Writes an answer; the first piece goes out with the head.
    func writePending(_ answer: PendingResponse) {
        guard let context, let head = beginAnswer(answer.head), let number = currentNumber else {
            return
        }
        // The answer to a HEAD ends with its head.
        let isEmpty =
            exchange?.answer?.framing == ResponseHead.Framing.none || answer.range.isEmpty
        let start = answer.range.lowerBound
        let piece = isEmpty ? nil : answer.piece(at: start, context.channel.allocator)
        let sent = sendAtOnce(head, piece)
        if sent < head.readableBytes {
            let rest = head.getSlice(
                at: head.readerIndex + sent,
                length: head.readableBytes - sent
            )
            // A body that follows says for both when they have gone.
            if isEmpty {
                enqueue(rest ?? head, context)
            } else {
                context.write(wrapOutboundOut(.byteBuffer(rest ?? head)), promise: nil)
            }
        }
        if isEmpty {
            context.flush()
            _ = finishAnswer()
            return
        }
        write(piece, of: answer, at: start, number, sent: max(0, sent - head.readableBytes))
    }

    private func writePiece(of answer: PendingResponse, at offset: Int64, _ number: UInt64) {
        guard let context, currentNumber == number, !isEnding else { return }
        write(answer.piece(at: offset, context.channel.allocator), of: answer, at: offset, number)
    }

    /// Writes a piece of which some bytes may have been sent, and then the next one.
    private func write(
        _ piece: PendingResponse.Piece?,
        of answer: PendingResponse,
        at offset: Int64,
        _ number: UInt64,
        sent: Int = 0
    ) {
        guard let context else { return }
        let written: EventLoopFuture<Void>
        let end: Int64
        switch piece {
        case .copied(let bytes):
            end = offset + Int64(bytes.readableBytes)
            written = writeCopy(bytes, sent: sent)
        case .leased(let bytes):
            end = bytes.range.upperBound
            written = writeFile(bytes, sent: sent)
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
            // Later, so that a client that takes everything at once does not keep the others
            // waiting.
            loop.execute { bound.value.writePiece(of: answer, at: end, number) }
        }
    }

    /// Sends the head and a piece past the channel, which has nothing else to write now.
    ///
    /// - Returns: how many bytes of both the socket has taken; the rest is written as usual.
    private func sendAtOnce(_ head: ByteBuffer, _ piece: PendingResponse.Piece?) -> Int {
        guard let piece, let context, context.channel.isActive,
            let socket = socket(of: context)
        else { return 0 }
        return head.withUnsafeReadableBytes { head in
            switch piece {
            case .copied(let bytes):
                return bytes.withUnsafeReadableBytes { bytes in
                    Int(
                        tc_send_both(
                            socket,
                            head.baseAddress,
                            head.count,
                            bytes.baseAddress,
                            bytes.count
                        )
                    )
                }
            case .leased(let bytes):
                return Int(
                    tc_send_with_file(
                        socket,
                        head.baseAddress,
                        head.count,
                        bytes.descriptor,
                        bytes.place.lowerBound,
                        Int(bytes.count)
                    )
                )
            }
        }
    }

    /// The descriptor of the socket, which is found out once; nil if the channel has none.
    private func socket(of context: ChannelHandlerContext) -> CInt? {
        if let descriptor { return descriptor }
        do {
            descriptor = try context.channel.pipeline.syncOperations.withUnsafeTransportIfAvailable(
                of: NIOBSDSocket.Handle.self
            ) { $0 }
        } catch {
            // A channel that is closed has none any more: it is written to as usual, and that
            // fails.
            descriptor = nil
        }
        return descriptor
    }

    /// Writes what has not been sent of a piece that was copied.
    private func writeCopy(_ bytes: ByteBuffer, sent: Int) -> EventLoopFuture<Void> {
        guard let context, let answer = exchange?.answer else {
            return server.failedFuture(ConnectionFailure.misuse)
        }
        guard sent > 0 else { return writeBody(bytes) }
        guard beginPiece(Int64(sent), context) else {
            return server.failedFuture(ConnectionFailure.misuse)
        }
        didWrite()
        guard sent < bytes.readableBytes else { return answer.lastWrite }
        return writeBody(
            bytes.getSlice(at: bytes.readerIndex + sent, length: bytes.readableBytes - sent)
                ?? bytes
        )
    }

    /// Writes a piece of the body from a file; done when it has gone to the socket.
    func writeLeased(_ bytes: LeasedBytes) -> EventLoopFuture<Void> {
        // The answer to a HEAD, a 304 or a 204 has no body.
        if let answer = exchange?.answer, answer.framing == .none { return answer.lastWrite }
        return writeFile(bytes, sent: 0)
    }

    /// Has the kernel send bytes from a file; done when they have gone to the socket.
    ///
    /// - Parameters:
    ///   - bytes: which ones.
    ///   - sent: how many of them have been sent.
    /// - Returns: when they are all sent.
    private func writeFile(_ bytes: LeasedBytes, sent: Int) -> EventLoopFuture<Void> {
        guard let context, let answer = exchange?.answer else {
            return server.failedFuture(ConnectionFailure.misuse)
        }
        guard beginPiece(bytes.count, context) else {
            return server.failedFuture(ConnectionFailure.misuse)
        }
        guard sent < bytes.count else {
            didWrite()
            return answer.lastWrite
        }
        let handle = NIOFileHandle(_deprecatedTakingOwnershipOfDescriptor: bytes.descriptor)
        let region = FileRegion(
            fileHandle: handle,
            readerIndex: Int(bytes.place.lowerBound) + sent,
            endIndex: Int(bytes.place.upperBound)
        )
        let done = context.eventLoop.makePromise(of: Void.self)
        leased = bytes
        let bound = NIOLoopBound(self, eventLoop: context.eventLoop)
        done.futureResult.whenComplete { result in
            bound.value.fileTimer?.stop()
            bound.value.leased = nil
            withExtendedLifetime(bytes) { Self.letGo(handle) }
            if case .success = result { bound.value.didWrite() }
        }
        context.write(wrapOutboundOut(.fileRegion(region)), promise: done)
        endPiece(context)
        // Mostly all of it has gone by now.
        if leased != nil { watch(context) }
        exchange?.answer?.lastWrite = done.futureResult
        return done.futureResult
    }

    /// Looks now and then whether there still is something to be sent.
    ///
    /// A file of the cache that was truncated leaves the kernel with nothing to send, again and
    /// again.
    private func watch(_ context: ChannelHandlerContext) {
        if fileTimer == nil {
            fileTimer = ConnectionTimer(eventLoop: context.eventLoop) { [unowned self] in
                guard let leased else { return }
                guard leased.checkFile() else { return cut() }
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
