import FoundationEssentials
import NIOCore
import TieredCache

/// What answers the requests of a server.
protocol Responder: Sendable {
    /// The answer, if it can be begun without waiting for anything; called on the event loop.
    func immediateAnswer(to request: ServerRequest) -> PendingResponse?

    /// Answers a request; cancelled when the client leaves.
    ///
    /// An answer that is not finished when this returns is cut: the connection is dropped.
    func respond(
        to request: ServerRequest,
        body: RequestBody,
        with writer: ResponseWriter
    ) async
}

extension Responder {
    func immediateAnswer(to request: ServerRequest) -> PendingResponse? { nil }
}

/// A head and all of its body.
struct WholeAnswer: Sendable {
    var head: ResponseHead
    var body = ByteBuffer()
}

/// The body of a request: pulled piece by piece, what is not pulled stays in the socket.
struct RequestBody: Sendable {
    let connection: ConnectionReference

    /// The next bytes, or nil at the end.
    ///
    /// - Throws: where the client left, was too slow, or broke the framing.
    func next() async throws -> ByteBuffer? {
        try await connection.perform { $0.nextBodyPart() }
    }
}

/// Writes one answer; waits as long as the client does not read.
struct ResponseWriter: Sendable {
    let connection: ConnectionReference

    /// Sends an interim answer, 103 for example; left out where the client speaks HTTP/1.0.
    func sendInterim(_ head: ResponseHead) async throws {
        try await connection.perform { $0.writeInterim(head) }
    }

    /// Sends the head.
    func start(_ head: ResponseHead) async throws {
        try await connection.perform { $0.writeHead(head) }
    }

    /// Sends a piece of the body; returns when it has gone to the socket.
    func write(_ bytes: ByteBuffer) async throws {
        try await connection.perform { $0.writeBody(bytes) }
    }

    /// Sends the next bytes of a body, and returns when they have gone to the socket.
    ///
    /// They go from their file, where it holds them. Else they are copied piece by piece: a client
    /// that does not read keeps one piece in memory.
    ///
    /// - Parameter body: what is sent; one chunk of it.
    /// - Returns: how many bytes; nil at the end of the body.
    /// - Throws: a `CacheError` where the body has failed, and another where the client has left.
    func writeNext(of body: inout ResponseBody.AsyncIterator) async throws -> Int64? {
        if let leased = body.lease(PendingResponse.minimumLeased...Self.maximumLeased) {
            try await connection.perform { $0.writeLeased(leased) }
            return leased.count
        }
        guard let chunk = try await body.next(atMost: Int(PendingResponse.maximumCopied)) else {
            return nil
        }
        let count = Int64(chunk.count)
        try await write(chunk)
        return count
    }

    /// How much is leased at once: what is leased counts as read, and more than the player has room
    /// for may be fetched then though it is about to leave.
    private static let maximumLeased: Int64 = 64 << 10

    /// Sends bytes, copied piece by piece.
    ///
    /// - Parameter bytes: given away, so that nobody keeps them while the client does not read.
    /// - Throws: where the client has left.
    private func write(_ bytes: consuming Data) async throws {
        var rest = bytes
        while !rest.isEmpty {
            let piece = ByteBuffer(copying: rest.prefix(Int(PendingResponse.maximumCopied)))
            // What is left of a slice would keep all of it.
            let isLast = rest.count == piece.readableBytes
            rest = isLast ? Data() : rest.dropFirst(piece.readableBytes)
            try await write(piece)
        }
    }

    /// Ends the body; returns when all of it has gone to the socket.
    func finish() async throws {
        try await connection.perform { $0.finishAnswer() }
    }

    /// Sends a whole answer.
    func send(_ answer: WholeAnswer) async throws {
        try await connection.perform { $0.writeWhole(answer) }
    }
}
