import CLinuxCalls
import NIOCore
import TieredCache

// Responses from stored bytes, without a task: piece by piece, each when the previous one has been
// written to the socket.
extension ConnectionHandler {
    /// Writes a response; the first piece is sent with the head.
    func writePending(_ answer: PendingResponse) {
        guard let context, let head = beginResponse(answer.head), let number = currentNumber else {
            return
        }
        // The response to a HEAD has no body.
        let isEmpty =
            exchange?.answer?.framing == ResponseHead.Framing.none || answer.range.isEmpty
        let start = answer.range.lowerBound
        let piece = isEmpty ? nil : answer.piece(at: start, allocator: context.channel.allocator)
        let sent = sendAtOnce(head, piece: piece)
        if sent < head.readableBytes {
            let rest = head.getSlice(
                at: head.readerIndex + sent,
                length: head.readableBytes - sent
            )
            // If a body follows, its promise covers the head too.
            if isEmpty {
                enqueue(rest ?? head, in: context)
            } else {
                context.write(wrapOutboundOut(.byteBuffer(rest ?? head)), promise: nil)
            }
        }
        if isEmpty {
            context.flush()
            _ = finishResponse()
            return
        }
        write(piece, of: answer, at: start, number: number, sent: max(0, sent - head.readableBytes))
    }

    private func writePiece(of answer: PendingResponse, at offset: Int64, number: UInt64) {
        guard let context, currentNumber == number, !isEnding else { return }
        write(
            answer.piece(at: offset, allocator: context.channel.allocator),
            of: answer,
            at: offset,
            number: number
        )
    }

    /// Writes a piece, of which `sent` bytes have been sent already, and then the next one.
    private func write(
        _ piece: PendingResponse.Piece?,
        of answer: PendingResponse,
        at offset: Int64,
        number: UInt64,
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
            _ = finishResponse()
            return
        }
        let bound = NIOLoopBound(self, eventLoop: context.eventLoop)
        let loop = context.eventLoop
        // In a later tick, so that a fast client does not block other connections of the loop.
        written.flatMap { bound.value.pause(after: end - offset) }
            .whenSuccess {
                loop.execute { bound.value.writePiece(of: answer, at: end, number: number) }
            }
    }

    /// Sends the head and a piece directly to the socket; the channel has nothing else to write
    /// now.
    ///
    /// - Returns: how many bytes of both the socket has taken; the rest is written through the
    ///   channel.
    private func sendAtOnce(_ head: ByteBuffer, piece: PendingResponse.Piece?) -> Int {
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

    /// The descriptor of the socket, looked up once; nil if the channel has none.
    private func socket(of context: ChannelHandlerContext) -> CInt? {
        if let descriptor { return descriptor }
        do {
            descriptor = try context.channel.pipeline.syncOperations.withUnsafeTransportIfAvailable(
                of: NIOBSDSocket.Handle.self
            ) { $0 }
        } catch {
            // A closed channel has no descriptor; the write through the channel will fail.
            descriptor = nil
        }
        return descriptor
    }

    /// Writes the bytes of a copied piece that have not been sent.
    private func writeCopy(_ bytes: ByteBuffer, sent: Int) -> EventLoopFuture<Void> {
        guard let context, let answer = exchange?.answer else {
            return server.failedFuture(ConnectionFailure.misuse)
        }
        guard sent > 0 else { return writeBody(bytes) }
        guard beginPiece(length: Int64(sent), in: context) else {
            return server.failedFuture(ConnectionFailure.misuse)
        }
        didWrite()
        guard sent < bytes.readableBytes else { return answer.lastWrite }
        return writeBody(
            bytes.getSlice(at: bytes.readerIndex + sent, length: bytes.readableBytes - sent)
                ?? bytes
        )
    }

    /// Writes a piece of the body from a file; the future completes when it is written to the
    /// socket.
    func writeLeased(_ bytes: LeasedBytes) -> EventLoopFuture<Void> {
        // The response to a HEAD, a 304 and a 204 have no body.
        if let answer = exchange?.answer, answer.framing == .none { return answer.lastWrite }
        return writeFile(bytes, sent: 0)
    }

    /// Lets the kernel send bytes from a file.
    ///
    /// - Parameters:
    ///   - bytes: the leased bytes.
    ///   - sent: how many of them have already been sent.
    /// - Returns: completes when all bytes are written to the socket.
    private func writeFile(_ bytes: LeasedBytes, sent: Int) -> EventLoopFuture<Void> {
        guard let context, let answer = exchange?.answer else {
            return server.failedFuture(ConnectionFailure.misuse)
        }
        guard beginPiece(length: bytes.count, in: context) else {
            return server.failedFuture(ConnectionFailure.misuse)
        }
        guard sent < bytes.count else {
            didWrite()
            return answer.lastWrite
        }
        // `FileRegion` takes nothing else, and the other initialisers open a file; see `letGo`.
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
            // The handle first: without the lease the number may soon stand for another file.
            withExtendedLifetime(bytes) { Self.letGo(handle) }
            if case .success = result { bound.value.didWrite() }
        }
        context.write(wrapOutboundOut(.fileRegion(region)), promise: done)
        endPiece(context)
        // Usually all bytes are written by now.
        if leased != nil { watch(context) }
        exchange?.answer?.lastWrite = done.futureResult
        return done.futureResult
    }

    /// Checks periodically that the file still has the bytes to be sent.
    ///
    /// When a file of the cache is truncated, `sendfile` returns zero bytes forever.
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

    /// Releases the handle without closing the descriptor, which belongs to the cache.
    private static func letGo(_ handle: NIOFileHandle) {
        do {
            _ = try handle.takeDescriptorOwnership()
        } catch {
            assertionFailure("a handle without another owner is in use: \(error)")
        }
    }
}
