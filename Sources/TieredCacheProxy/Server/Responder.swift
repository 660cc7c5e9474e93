import FoundationEssentials
import NIOCore
import TieredCache

/// Answers the requests of a server.
protocol Responder: Sendable {
    /// Learns which trace a client's request belongs to; nil for nothing.
    var observer: (any OriginObserver)? { get }

    /// What the connection becomes instead of getting a response; called on the event loop.
    func upgrade(for request: ServerRequest) -> ConnectionUpgrade?

    /// The response, if it can begin without waiting; called on the event loop.
    func immediateResponse(to request: ServerRequest) -> PendingResponse?

    /// Answers a request; cancelled when the client disconnects.
    ///
    /// A response that is not finished when this method returns is cut off: the connection is
    /// dropped.
    func respond(
        to request: ServerRequest,
        body: RequestBody,
        with writer: ResponseWriter
    ) async
}

extension Responder {
    var observer: (any OriginObserver)? { nil }

    func upgrade(for request: ServerRequest) -> ConnectionUpgrade? { nil }

    func immediateResponse(to request: ServerRequest) -> PendingResponse? { nil }
}

/// A head and its whole body.
struct WholeResponse: Sendable {
    var head: ResponseHead
    var body = ByteBuffer()
}

/// The body of a request, pulled piece by piece; other bytes stay in the socket.
struct RequestBody: Sendable {
    let connection: ConnectionReference

    /// The next bytes; nil at the end.
    ///
    /// - Throws: ``ConnectionFailure`` if the client disconnected, was too slow, or broke the
    ///   framing.
    func next() async throws -> ByteBuffer? {
        try await connection.perform { $0.nextBodyPart() }
    }
}

/// Writes one response; waits while the client does not read.
struct ResponseWriter: Sendable {
    let connection: ConnectionReference

    /// Runs tasks on the connection's event loop.
    var executor: EventLoopExecutor { connection.executor }

    /// Sends an interim response soon, 103 for example; may be called from any thread.
    ///
    /// It is dropped after the final head, for HTTP/1.0, and where the client does not read.
    func sendInterim(_ head: ResponseHead) {
        connection.submit { $0.writeInterim(head) }
    }

    /// Returns when all interim responses so far have been written, which have to precede the head.
    func finishInterims() async throws {
        try await connection.passSubmitted()
    }

    /// Sends the head.
    func start(_ head: ResponseHead) async throws {
        try await connection.perform { $0.writeHead(head) }
    }

    /// Sends a piece of the body; returns when it is written to the socket.
    func write(_ bytes: ByteBuffer) async throws {
        try await connection.perform { $0.writeBody(bytes) }
    }

    /// Sends the next bytes of a body; returns when they are written to the socket.
    ///
    /// Bytes in a file are sent from there, as far as the socket takes them at once. Others are
    /// copied piece by piece: a client that does not read occupies one piece of memory.
    ///
    /// - Parameter body: the body; one chunk of it is sent.
    /// - Returns: the number of bytes sent; nil at the end of the body.
    /// - Throws: a `CacheError` if the body failed; another error if the client has disconnected.
    func writeNext(of body: inout ResponseBody.AsyncIterator) async throws -> Int64? {
        let sent = body.lease(PendingResponse.minimumLeased...Self.maximumLeased) {
            connection.send($0)
        }
        if let sent, sent > 0 {
            try await pause(after: sent)
            return sent
        }
        let most = sent == nil ? PendingResponse.maximumCopied : PendingResponse.probe
        guard let chunk = try await body.next(atMost: Int(most)) else { return nil }
        let count = Int64(chunk.count)
        try await write(chunk)
        try await pause(after: count)
        return count
    }

    /// Lets the loop look at its other connections where much was sent without a wait.
    private func pause(after count: Int64) async throws {
        try await connection.perform { $0.pause(after: count) }
    }

    /// The most bytes leased at once.
    ///
    /// Leased bytes count as read, so a larger lease makes the cache fetch bytes for a player that
    /// may be about to disconnect.
    private static let maximumLeased: Int64 = 64 << 10

    /// Sends bytes, copied piece by piece.
    ///
    /// - Parameter bytes: consumed, so that the caller does not keep them while the client does not
    ///   read.
    /// - Throws: an error if the client has disconnected.
    func write(_ bytes: consuming Data) async throws {
        var rest = bytes
        while !rest.isEmpty {
            let piece = ByteBuffer(copying: rest.prefix(Int(PendingResponse.maximumCopied)))
            // A slice would keep the whole storage alive.
            let isLast = rest.count == piece.readableBytes
            rest = isLast ? Data() : rest.dropFirst(piece.readableBytes)
            try await write(piece)
        }
    }

    /// Ends the body; returns when all of it is written to the socket.
    func finish() async throws {
        try await connection.perform { $0.finishResponse() }
    }

    /// Sends a whole response.
    func send(_ answer: WholeResponse) async throws {
        try await connection.perform { $0.writeWhole(answer) }
    }
}
