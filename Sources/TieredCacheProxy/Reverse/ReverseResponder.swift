import FoundationEssentials
import HTTPCaching
import HTTPTypes
import Logging
import NIOCore
import NIOHTTP1
import TieredCache

/// Passes requests on to one origin, and answers from the cache where RFC 9111 allows it.
struct ReverseResponder: Responder {
    let cache: TieredCache
    let target: ReverseTarget
    let logger: Logger
    let hits = HitBook()

    func respond(
        to request: ServerRequest,
        body: RequestBody,
        with writer: ResponseWriter
    ) async {
        do {
            switch Self.order(request, body, target) {
            case .success(let order):
                try await relay(order, request, writer)
            case .failure(let refusal):
                try await writer.send(.text(refusal.status))
            }
        } catch {
            // The client has left, or the origin has failed in the middle: the answer is cut.
            logger.debug("answer cut", metadata: ["error": "\(error)"])
        }
    }

    /// Why a request is not passed on.
    private struct Refusal: Error {
        let status: Int
    }

    private static func order(
        _ request: ServerRequest,
        _ body: RequestBody,
        _ target: ReverseTarget
    ) -> Result<RelayRequest, Refusal> {
        guard let method = request.method else {
            return .failure(Refusal(status: 400))
        }
        // A tunnel has no business here, and an echo would show what the client must not see.
        guard method != .connect, method != .trace else { return .failure(Refusal(status: 405)) }
        guard let url = target.target(for: request.target) else {
            return .failure(Refusal(status: 400))
        }
        var fields = request.fields
        if let expectation = request.value("expect"), expectation.lowercased() != "100-continue" {
            return .failure(Refusal(status: 417))
        }
        guard !Intermediary.endsHere(method, &fields) else {
            return .failure(Refusal(status: 200))
        }
        let isHTTP10 = request.head.version == .http1_0
        fields = Intermediary.addingVia(fields, isHTTP10: isHTTP10)
        let upload =
            request.hasBody
            ? UploadBody(length: request.contentLength) {
                try await body.next().map { BodyChunk(BufferStorage(buffer: $0)) }
            } : nil
        return .success(RelayRequest(method: method, target: url, fields: fields, body: upload))
    }

    private func relay(
        _ order: RelayRequest,
        _ request: ServerRequest,
        _ writer: ResponseWriter
    ) async throws {
        let response: RelayResponse
        do {
            response = try await answer(order, writer)
        } catch {
            guard error.code != .cancelled, error.code != .shutDown else { return }
            logger.info("origin failed", metadata: ["error": "\(error)"])
            return try await writer.send(.text(error.code == .timedOut ? 504 : 502))
        }
        try await writer.start(Self.head(of: response, isHead: request.isHead))
        var chunks = response.body.makeAsyncIterator()
        while let chunk = try await chunks.next() {
            try await writer.write(chunk)
        }
        try await writer.finish()
    }

    /// Asks, and passes the origin's interim responses on before the answer comes.
    private func answer(
        _ order: RelayRequest,
        _ writer: ResponseWriter
    ) async throws(CacheError) -> RelayResponse {
        var order = order
        let (interim, incoming) = AsyncStream.makeStream(of: HTTPResponse.self)
        order.onInterim = { incoming.yield($0) }
        let sender = Task {
            for await response in interim {
                let fields = StoredFields.endToEnd(response.headerFields)
                let head = ResponseHead(
                    status: response.status.code,
                    fields: fields,
                    framing: .none
                )
                try await writer.sendInterim(head)
            }
        }
        let result: Result<RelayResponse, CacheError>
        do throws(CacheError) {
            result = .success(try await cache.relay(order))
        } catch {
            result = .failure(error)
        }
        incoming.finish()
        // A client that has left is noticed when the answer is written.
        _ = await sender.result
        return try result.get()
    }

    private static func head(of response: RelayResponse, isHead: Bool) -> ResponseHead {
        var fields = Intermediary.addingVia(StoredFields.endToEnd(response.fields))
        let length = fields[.contentLength].flatMap { Int64($0) }
        fields[.contentLength] = nil
        let code = response.status.code
        let framing: ResponseHead.Framing =
            if code == 204 || code == 304 || code < 200 {
                .none
            } else if let length {
                .length(length)
            } else {
                isHead ? .none : .unknown
            }
        return ResponseHead(
            status: code,
            reason: response.status.reasonPhrase,
            fields: fields,
            framing: framing
        )
    }
}

/// NIO's buffer, lent to the transport without a copy.
private struct BufferStorage: BodyChunkStorage {
    let buffer: ByteBuffer

    var count: Int { buffer.readableBytes }

    func withBytes<Result, Failure: Error>(
        _ body: (UnsafeRawBufferPointer) throws(Failure) -> Result
    ) throws(Failure) -> Result {
        try buffer.withUnsafeReadableBytes(body)
    }
}
