import FoundationEssentials
import HTTPCaching
import HTTPTypes

/// Opens readers of the response to a request.
struct ReaderOpener: Sendable {
    let responder: Responder
    /// The request to read; its range is ignored.
    let request: CacheRequest
    let options: ReaderOptions

    init(responder: Responder, request: CacheRequest, options: ReaderOptions) {
        self.responder = responder
        self.options = options
        var request = request
        request.range = nil
        self.request = request
    }

    /// Opens a reader; its first request is for the bytes at `offset`.
    func reader(
        at offset: Int64 = 0,
        expectedEnd end: Int64? = nil
    ) async throws(CacheError) -> CacheReader {
        guard (0..<ByteOffset.limit).contains(offset) else {
            throw CacheError(.invalidArgument, "cannot read at offset \(offset)")
        }
        if let response = wholeInMemory, let reader = reader(from: response, at: offset) {
            return reader
        }
        let opening = FirstRange.ofReader(at: offset, expectedEnd: end)
        do throws(CacheError) {
            let response = try await open(opening)
            if let reader = reader(from: response, at: offset, opening: opening) { return reader }
        } catch {
            // An empty body has no first byte to request.
            guard error.code == .rangeNotSatisfiable, offset == 0 else { throw error }
        }
        // Without a strong validator parts cannot be combined, so the whole is requested.
        let response = try await open(0..<Int64.max)
        guard let reader = reader(from: response, at: offset) else {
            throw CacheError(
                .originFailed,
                "\(request.target.redacted) gave no answer that a reader can use; try again"
            )
        }
        return reader
    }

    /// A reader over what is fresh, and in memory or whole in a file that is open; nil if it takes
    /// more than a look to open one.
    ///
    /// Never waits. A small body on disk is left to ``reader(at:expectedEnd:)``, which promotes it.
    func readerAtHand() -> CacheReader? {
        let opening = FirstRange.ofReader(at: 0, expectedEnd: nil)
        let response =
            wholeInMemory ?? responder.wholeResponseAtHand(reading, opening: opening)
        return response.flatMap { reader(from: $0, at: 0) }
    }

    /// The request, with the deadline of reads.
    private var timed: CacheRequest {
        var request = request
        request.readDeadline = options.deadline
        return request
    }

    /// The request, as one of a reader.
    private var reading: CacheRequest {
        var request = timed
        request.scope = ReaderScope(range: nil, options: options)
        return request
    }

    private func open(_ range: Range<Int64>) async throws(CacheError) -> CacheResponse {
        var request = reading
        if range != 0..<Int64.max { request.range = .bounded(range) }
        let response = try await responder.response(for: request)
        try response.requireSuccess(of: request)
        return response
    }

    private var wholeInMemory: CacheResponse? {
        guard !request.isPinned, let response = responder.memoryResponse(request),
            response.status.code < 400
        else { return nil }
        return response
    }

    /// A reader that continues a response; nil if it needs the whole representation instead.
    private func reader(
        from response: CacheResponse,
        at offset: Int64,
        opening: Range<Int64> = 0..<Int64.max
    ) -> CacheReader? {
        let source: any BodyReader
        switch response.body.source.open() {
        case .seekable(let bytes):
            guard response.range == (0, response.completeLength) else { return nil }
            source = bytes
        case .sequential:
            // A reader cannot use a part that nothing can be combined with.
            let canGoOn = response.head.validator != nil && response.completeLength != nil
            guard opening == 0..<Int64.max || canGoOn else { return nil }
            source = ReopeningReader(response, for: timed, time: responder.time) {
                [responder] (request) async throws(CacheError) in
                try await responder.response(for: request)
            }
        }
        return CacheReader(
            source,
            request: request,
            response: response,
            position: offset,
            options: options,
            time: responder.time
        )
    }
}
