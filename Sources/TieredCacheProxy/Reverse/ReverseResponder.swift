import FoundationEssentials
import HTTPCaching
import HTTPTypes
import Logging
import NIOCore
import NIOHTTP1
import TieredCache

/// Forwards requests to one origin, and answers from the cache where RFC 9111 allows it.
struct ReverseResponder: Responder {
    let cache: MediaCache
    let target: ReverseTarget
    var hosts = ReverseHosts(origin: nil, others: [])
    let logger: Logger
    var continueTimeout: Duration = .seconds(1)
    let hits = ResponseHeadCache()
    var pseudonym = Intermediary.Pseudonym()

    var observer: (any OriginObserver)? { cache.observer }

    func respond(
        to request: ServerRequest,
        body: RequestBody,
        with writer: ResponseWriter
    ) async {
        do {
            guard hosts.allows(request.value("host")) else {
                return try await writer.send(.text(421))
            }
            guard !pseudonym.isNamed(in: request.value("via")) else {
                return try await writer.send(.text(508))
            }
            var fields = request.fields
            if let answer = LocalResponse.to(request, fields: &fields) {
                return try await writer.send(answer)
            }
            guard let target = target.target(for: request.target), let method = request.method
            else { return try await writer.send(.text(400)) }
            let awaited = request.expectsContinue ? AwaitedContinue(patience: continueTimeout) : nil
            if awaited == nil { fields[.expect] = nil }
            let isHTTP10 = request.head.version == .http1_0
            let order = RelayRequest(
                method: method,
                target: target,
                fields: pseudonym.addingVia(fields, isHTTP10: isHTTP10),
                body: request.hasBody
                    ? Self.upload(for: request, body: body, awaited: awaited) : nil
            )
            try await relay(order, for: request, awaited: awaited, to: writer)
        } catch {
            // The client has disconnected, or the origin failed during the body: the response is
            // cut off.
            logger.debug("answer cut", metadata: ["error": "\(error)"])
        }
    }

    private static func upload(
        for request: ServerRequest,
        body: RequestBody,
        awaited: AwaitedContinue?
    ) -> UploadBody {
        UploadBody(length: request.contentLength) {
            try await awaited?.wait()
            return try await body.next().map { BodyChunk(BufferStorage(buffer: $0)) }
        }
    }

    private func relay(
        _ order: RelayRequest,
        for request: ServerRequest,
        awaited: AwaitedContinue?,
        to writer: ResponseWriter
    ) async throws {
        let response: RelayResponse
        let passed = PassedInterims()
        do {
            response = try await answer(to: order, awaited: awaited, noting: passed, to: writer)
        } catch {
            guard error.code != .cancelled, error.code != .shutDown else { return }
            logger.info("origin failed", metadata: ["error": "\(error)"])
            return try await writer.send(LocalResponse.to(error))
        }
        if passed.hasAny { try await writer.finishInterims() }
        try await writer.start(Self.head(of: response, isHead: request.isHead))
        var body = response.body.makeAsyncIterator()
        while try await writer.writeNext(of: &body) != nil {}
        try await writer.finish()
    }

    /// Relays a request, and forwards interim responses of the origin until the final response
    /// arrives.
    private func answer(
        to order: RelayRequest,
        awaited: AwaitedContinue?,
        noting passed: PassedInterims,
        to writer: ResponseWriter
    ) async throws(CacheError) -> RelayResponse {
        var order = order
        order.onInterim = { response in
            // The client gets its own 100 when its body is read.
            if let awaited, response.status == .continue { return awaited.open() }
            passed.note()
            writer.sendInterim(
                ResponseHead(
                    status: response.status.code,
                    fields: StoredFields.endToEnd(response.headerFields),
                    framing: .none
                )
            )
        }
        return try await cache.relay(order)
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

/// Whether interim responses have been passed on.
private final class PassedInterims: Sendable {
    private let state = Guarded(false)

    var hasAny: Bool { state.withLock { $0 } }

    func note() { state.withLock { $0 = true } }
}

/// NIO's buffer, leased to the transport without a copy.
private struct BufferStorage: BodyChunkStorage {
    let buffer: ByteBuffer

    var count: Int { buffer.readableBytes }

    func withBytes<Result, Failure: Error>(
        _ body: (UnsafeRawBufferPointer) throws(Failure) -> Result
    ) throws(Failure) -> Result {
        try buffer.withUnsafeReadableBytes(body)
    }
}
