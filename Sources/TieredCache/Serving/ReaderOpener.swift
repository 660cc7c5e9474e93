import FoundationEssentials
import HTTPCaching
import HTTPTypes

/// Opens readers of what answers a request.
struct ReaderOpener: Sendable {
    let responder: Responder
    /// What is to be read; its range plays no role.
    let request: CacheRequest
    let options: ReaderOptions

    init(_ responder: Responder, _ request: CacheRequest, _ options: ReaderOptions) {
        self.responder = responder
        self.options = options
        var request = request
        request.range = nil
        self.request = request
    }

    /// Opens a reader; what it fetches first is around `offset`.
    func reader(
        at offset: Int64 = 0,
        expectedEnd end: Int64? = nil
    ) async throws(CacheError) -> CacheReader {
        guard (0..<ByteOffset.limit).contains(offset) else {
            throw CacheError(.invalidArgument, "cannot read at offset \(offset)")
        }
        if let response = wholeInMemory, let reader = reader(response) { return reader }
        let opening = FirstRange.ofReader(at: offset, expectedEnd: end)
        do throws(CacheError) {
            let response = try await open(opening)
            if let reader = reader(response, opening) { return reader }
        } catch {
            // An empty body has no first byte to ask for.
            guard error.code == .rangeNotSatisfiable, offset == 0 else { throw error }
        }
        // An origin whose parts cannot be told to belong together is asked for the whole.
        let response = try await open(0..<Int64.max)
        guard let reader = reader(response) else {
            throw CacheError(
                .originFailed,
                "\(request.target.redacted) gave no answer that a reader can use; try again"
            )
        }
        return reader
    }

    private func open(_ range: Range<Int64>) async throws(CacheError) -> CacheResponse {
        var request = request
        if range != 0..<Int64.max { request.range = .bounded(range) }
        request.scope = ReaderScope(range: nil, options: options)
        let response = try await responder.response(for: request)
        try response.requireSuccess(of: request)
        return response
    }

    private var wholeInMemory: CacheResponse? {
        guard !request.isPinned, let response = responder.memoryAnswer(request),
            response.status.code < 400
        else { return nil }
        return response
    }

    /// A reader that goes on from a response; nil where only the whole would do.
    private func reader(
        _ response: CacheResponse,
        _ opening: Range<Int64> = 0..<Int64.max
    ) -> CacheReader? {
        let source: any BodyReader
        switch response.body.source.open() {
        case .anywhere(let bytes):
            guard response.range == (0, response.completeLength) else { return nil }
            source = bytes
        case .inOrder:
            // A part that nothing can be joined to is of no use to a reader.
            let canGoOn = response.head.validator != nil && response.completeLength != nil
            guard opening == 0..<Int64.max || canGoOn else { return nil }
            source = ReopeningReader(response, request, time: responder.time) {
                [responder] (request) async throws(CacheError) in
                try await responder.response(for: request)
            }
        }
        return CacheReader(request, response, source, options, time: responder.time)
    }
}
