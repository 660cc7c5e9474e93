import FoundationEssentials
import NIOCore

/// What answers the requests of a server.
protocol Responder: Sendable {
    /// The answer, if it can be begun without waiting for anything; called on the event loop.
    func immediateAnswer(to request: ServerRequest) -> HeldAnswer?

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
    func immediateAnswer(to request: ServerRequest) -> HeldAnswer? { nil }
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

    /// Sends a piece of the body; returns when there is room for another one.
    func write(_ bytes: ByteBuffer) async throws {
        try await connection.perform { $0.writeBody(bytes) }
    }

    /// Sends bytes of the cache, copied piece by piece: a client that does not read keeps one piece in
    /// memory, however long the body is that is held there.
    ///
    /// - Parameter bytes: given away, so that nobody keeps them while the client does not read.
    /// - Throws: where the client has left.
    func write(_ bytes: consuming Data) async throws {
        var rest = bytes
        while !rest.isEmpty {
            let piece = ByteBuffer(copying: rest.prefix(Int(HeldAnswer.maximumCopied)))
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
