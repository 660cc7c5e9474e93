import HTTPCaching
import HTTPTypes
import Logging
import NIOCore
import NIOHTTP1
import TieredCache

/// Answers the guests of a cache directory with what origins would answer, and stores it.
///
/// A guest has the owner's own rights: only processes of its user can connect. What the owner
/// cannot answer, the guest asks the origin for: it gets 502 with ``SharedRequest/failure``.
struct GuestResponder: Responder {
    let cache: MediaCache
    let settings: ProxySettings
    let rules: CurrentRules

    init(cache: MediaCache, settings: ProxySettings) {
        self.cache = cache
        self.settings = settings
        rules = CurrentRules(settings.rules)
    }

    var observer: (any OriginObserver)? { cache.observer }

    func respond(
        to request: ServerRequest,
        body: RequestBody,
        with writer: ResponseWriter
    ) async {
        do {
            guard let order = GuestOrder(request, by: rules.value.rules) else {
                return try await fail(writer, because: "unknown")
            }
            // Two processes that take each other for the owner would ask each other for ever.
            guard cache.storageError == nil else {
                return try await fail(writer, because: "notOwner")
            }
            // The guest would take silence for a process that hangs.
            writer.sendInterim(ResponseHead(status: 102, framing: .none))
            let response: CacheResponse
            do {
                response = try await open(order)
            } catch let error as CacheError {
                try await writer.finishInterims()
                return try await fail(writer, because: "\(error.code)")
            }
            try await writer.finishInterims()
            try await answer(order, with: response, to: writer)
        } catch {
            // The guest has left, or the body failed after it had begun: the guest asks again.
            settings.logger.debug("answer to a guest cut", metadata: ["error": "\(error)"])
        }
    }

    private func open(_ order: GuestOrder, isWhole: Bool = false) async throws -> CacheResponse {
        var request = order.request
        request.range = isWhole ? nil : order.conditions.range
        return try await cache.streamedResponse(for: request, deadline: settings.stallTimeout)
    }

    private func answer(
        _ order: GuestOrder,
        with response: CacheResponse,
        to writer: ResponseWriter
    ) async throws {
        guard response.status.code == 200 else {
            return try await send(response, as: response.status, to: writer)
        }
        let outcome = order.conditions.outcome(
            tag: response.fields[.eTag].flatMap { EntityTag($0) },
            lastModified: response.fields[.lastModified],
            now: settings.timeSource.wallTime()
        )
        switch outcome {
        case .notModified: try await sendHead(304, of: response, framing: .none, to: writer)
        case .failed: try await sendHead(412, of: response, framing: .length(0), to: writer)
        case .answerWhole where order.conditions.range != nil:
            try await sendWhole(order, to: writer)
        case .answer, .answerWhole:
            guard order.conditions.range != nil else {
                return try await send(response, as: .ok, to: writer)
            }
            guard let length = response.completeLength else {
                return try await sendWhole(order, to: writer)
            }
            let range = response.range.lowerBound..<(response.range.upperBound ?? length)
            let content = ContentRange.bytes(range, completeLength: length).fieldValue
            try await send(response, as: .partialContent, contentRange: content, to: writer)
        }
    }

    /// Sends the whole in the place of a range, where that is what there is.
    private func sendWhole(_ order: GuestOrder, to writer: ResponseWriter) async throws {
        let response = try await open(order, isWhole: true)
        try await send(response, as: response.status, to: writer)
    }

    // MARK: Sending

    private func send(
        _ response: CacheResponse,
        as status: HTTPResponse.Status,
        contentRange: String? = nil,
        to writer: ResponseWriter
    ) async throws {
        // A part has a length of its own; the end of a whole is known with its length alone.
        let end = contentRange == nil ? nil : response.range.upperBound
        let framing: ResponseHead.Framing =
            if [204, 304].contains(status.code) {
                .none
            } else if let end = end ?? response.completeLength {
                .length(end - response.range.lowerBound)
            } else {
                .unknown
            }
        var fields = fields(of: response)
        fields[.contentRange] = contentRange
        try await writer.start(ResponseHead(status: status.code, fields: fields, framing: framing))
        var body = response.body.makeAsyncIterator()
        while try await writer.writeNext(of: &body) != nil {}
        try await writer.finish()
    }

    private func sendHead(
        _ status: Int,
        of response: CacheResponse,
        framing: ResponseHead.Framing,
        to writer: ResponseWriter
    ) async throws {
        let head = ResponseHead(status: status, fields: fields(of: response), framing: framing)
        try await writer.send(WholeResponse(head: head))
    }

    private func fields(of response: CacheResponse) -> HTTPFields {
        var fields = StoredFields.endToEnd(response.fields)
        fields[.contentLength] = nil
        fields[.contentRange] = nil
        // What is relative in it, and its validator, belong to that URL.
        fields[SharedRequest.location] = response.finalTarget.string
        fields[SharedRequest.stored] = response.isStored ? String(response.generation ?? 0) : nil
        return fields
    }

    /// Leaves it to the guest to ask the origin.
    private func fail(_ writer: ResponseWriter, because reason: String) async throws {
        var answer = WholeResponse.text(502)
        answer.head.fields[SharedRequest.failure] = reason
        try await writer.send(answer)
    }
}
