import CLinuxCalls
import NIOCore
import TieredCache

// Responses from stored bytes, without a task: piece by piece, each when the previous one has been
// written to the socket. Of a file the socket gets what it takes at once: when it takes more, the
// page cache may not hold the rest any more, and the loop would wait for the disk.
extension ConnectionHandler {
    /// Writes a response; the first piece is sent with the head.
    func writePending(_ answer: PendingResponse) {
        guard let context, let head = beginResponse(answer.head), let number = currentNumber else {
            return
        }
        // The response to a HEAD has no body.
        if exchange?.answer?.framing == ResponseHead.Framing.none || answer.range.isEmpty {
            enqueue(head, in: context)
            context.flush()
            _ = finishResponse()
            return
        }
        let start = answer.range.lowerBound
        let fromFile = answer.lease(at: start) { bytes in
            (taken: sendAtOnce(head, bytes), count: bytes.count)
        }
        let copy = fromFile == nil ? answer.copy(at: start, on: context.channel) : nil
        let taken = fromFile?.taken ?? copy.map { sendAtOnce(head, $0) } ?? 0
        let sent = max(0, taken - head.readableBytes)
        if taken < head.readableBytes {
            let rest = head.getSlice(
                at: head.readerIndex + taken,
                length: head.readableBytes - taken
            )
            // A body follows, and its promise covers the head too.
            context.write(wrapOutboundOut(.byteBuffer(rest ?? head)), promise: nil)
        }
        guard let fromFile else {
            return write(copy, of: answer, at: start, number: number, sent: sent)
        }
        guard didSend(sent, in: context) else { return }
        goOn(
            answer,
            at: start + Int64(sent),
            number: number,
            sent: Int64(sent),
            isFull: sent < fromFile.count
        )
    }

    /// Writes the piece at an offset, and then the next one; `isFull` says whether the socket has
    /// taken what it can from a file.
    private func writePiece(
        of answer: PendingResponse,
        at offset: Int64,
        number: UInt64,
        isFull: Bool = false
    ) {
        guard let context, currentNumber == number, !isEnding else { return }
        let fromFile =
            isFull ? nil : answer.lease(at: offset) { (sent: send($0), count: $0.count) }
        if let fromFile, let sent = fromFile.sent {
            return goOn(
                answer,
                at: offset + sent,
                number: number,
                sent: sent,
                isFull: sent < fromFile.count
            )
        }
        let most = isFull ? PendingResponse.probe : PendingResponse.maximumCopied
        let copy = answer.copy(at: offset, atMost: most, on: context.channel)
        write(copy, of: answer, at: offset, number: number)
    }

    /// Writes a copied piece, of which `sent` bytes have been sent already, and then the next one.
    private func write(
        _ copy: ByteBuffer?,
        of answer: PendingResponse,
        at offset: Int64,
        number: UInt64,
        sent: Int = 0
    ) {
        guard let copy else {
            context?.flush()
            return startTask { await answer.goOn(offset, ResponseWriter(connection: $0)) }
        }
        let count = Int64(copy.readableBytes)
        let written = writeCopy(copy, sent: sent)
        goOn(answer, at: offset + count, number: number, sent: count, after: written)
    }

    /// Goes on at an offset, after a piece of which `sent` bytes have been sent.
    private func goOn(
        _ answer: PendingResponse,
        at offset: Int64,
        number: UInt64,
        sent: Int64,
        isFull: Bool = false,
        after written: EventLoopFuture<Void>? = nil
    ) {
        guard let context else { return }
        guard offset < answer.range.upperBound else {
            _ = finishResponse()
            return
        }
        if isFull { return writePiece(of: answer, at: offset, number: number, isFull: true) }
        let bound = NIOLoopBound(self, eventLoop: context.eventLoop)
        let loop = context.eventLoop
        // In a later tick, so that a fast client does not block other connections of the loop.
        (written ?? loop.makeSucceededVoidFuture())
            .flatMap { bound.value.pause(after: sent) }
            .whenSuccess {
                loop.execute { bound.value.writePiece(of: answer, at: offset, number: number) }
            }
    }

    /// Sends the head and a copied piece directly to the socket; the channel has nothing else to
    /// write now.
    ///
    /// - Returns: how many bytes of both the socket has taken; the rest is written through the
    ///   channel.
    private func sendAtOnce(_ head: ByteBuffer, _ copy: ByteBuffer) -> Int {
        guard let context, let socket = socket(of: context) else { return 0 }
        return head.withUnsafeReadableBytes { head in
            copy.withUnsafeReadableBytes { copy in
                Int(
                    tc_send_both(
                        socket,
                        head.baseAddress,
                        head.count,
                        copy.baseAddress,
                        copy.count
                    )
                )
            }
        }
    }

    /// The same for bytes of a file; what of them the socket has not taken is left.
    private func sendAtOnce(_ head: ByteBuffer, _ bytes: LeasedBytes) -> Int {
        guard let context, let socket = socket(of: context) else { return 0 }
        return head.withUnsafeReadableBytes { head in
            Int(
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

    /// Sends bytes of a file, as many as the socket takes at once.
    ///
    /// - Returns: how many; nil where they have to be copied.
    func send(_ bytes: LeasedBytes) -> Int64? {
        guard let context, let answer = exchange?.answer, !isEnding else { return nil }
        // The response to a HEAD, a 304 and a 204 have no body.
        if answer.framing == .none { return bytes.count }
        // Before a chunk its length has to be known.
        guard let missing = answer.missing, bytes.count <= missing else { return nil }
        context.flush()
        // Nothing may overtake what waits in the channel.
        guard !hasUnsent(context.channel) else { return 0 }
        let sent = sendAtOnce(ByteBuffer(), bytes)
        return didSend(sent, in: context) ? Int64(sent) : nil
    }

    /// Counts bytes of the body that were sent past the channel.
    private func didSend(_ count: Int, in context: ChannelHandlerContext) -> Bool {
        guard count > 0 else { return true }
        guard beginPiece(length: Int64(count), in: context) else { return false }
        didWrite()
        return true
    }

    private func hasUnsent(_ channel: any Channel) -> Bool {
        do {
            return try channel.syncOptions?.getOption(.bufferedWritableBytes) ?? 1 > 0
        } catch {
            return true  // Closed, or a channel that has no socket.
        }
    }

    /// The descriptor of the socket, looked up once; nil if the channel has none.
    private func socket(of context: ChannelHandlerContext) -> CInt? {
        guard context.channel.isActive else { return nil }
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
        guard didSend(sent, in: context) else {
            return server.failedFuture(ConnectionFailure.misuse)
        }
        guard sent < bytes.readableBytes else { return answer.lastWrite }
        return writeBody(
            bytes.getSlice(at: bytes.readerIndex + sent, length: bytes.readableBytes - sent)
                ?? bytes
        )
    }
}
