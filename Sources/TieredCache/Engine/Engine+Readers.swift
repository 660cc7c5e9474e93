import FoundationEssentials
import HTTPCaching
import HTTPTypes

// Opening readers.
extension Engine {
    /// Opens a reader; what it fetches first is around `offset`.
    func reader(
        for request: CacheRequest,
        at offset: Int64,
        certainTo end: Int64?,
        _ options: ReaderOptions
    ) async throws(CacheError) -> CacheReader {
        guard (0..<ByteOffset.limit).contains(offset) else {
            throw CacheError(.invalidArgument, "cannot read at offset \(offset)")
        }
        var request = request
        request.range = nil
        if let response = wholeInMemory(request), let reader = reader(response, request, options) {
            return reader
        }
        let opening = FirstRange.ofReader(at: offset, certainTo: end)
        do throws(CacheError) {
            let response = try await open(request, opening, options)
            if let reader = reader(response, request, options, opening) { return reader }
        } catch {
            // An empty body has no first byte to ask for.
            guard error.code == .rangeNotSatisfiable, offset == 0 else { throw error }
        }
        // An origin whose parts cannot be told to belong together is asked for the whole.
        let response = try await open(request, 0..<Int64.max, options)
        guard let reader = reader(response, request, options) else {
            throw CacheError(
                .originFailed,
                "\(request.target.redacted) gave no answer that a reader can use; try again"
            )
        }
        return reader
    }

    private func open(
        _ request: CacheRequest,
        _ range: Range<Int64>,
        _ options: ReaderOptions
    ) async throws(CacheError) -> CacheResponse {
        var request = request
        if range != 0..<Int64.max { request.range = .bounded(range) }
        request.scope = ReaderScope(range: nil, options: options)
        let response = try await response(for: request)
        try response.requireSuccess(of: request)
        return response
    }

    private func wholeInMemory(_ request: CacheRequest) -> CacheResponse? {
        guard !request.isPinned, let response = memoryAnswer(request), response.status.code < 400
        else { return nil }
        return response
    }

    /// A reader that goes on from a response; nil where only the whole would do.
    private func reader(
        _ response: CacheResponse,
        _ request: CacheRequest,
        _ options: ReaderOptions,
        _ opening: Range<Int64> = 0..<Int64.max
    ) -> CacheReader? {
        let medium: any ReaderMedium
        switch response.body.source.open() {
        case .anywhere(let bytes):
            guard response.range == (0, response.completeLength) else { return nil }
            medium = bytes
        case .inOrder:
            // A part that nothing can be joined to is of no use to a reader.
            let canGoOn = response.head.validator != nil && response.completeLength != nil
            guard opening == 0..<Int64.max || canGoOn else { return nil }
            medium = ReopeningMedium(response, request, time: time) {
                [self] (request) async throws(CacheError) in try await self.response(for: request)
            }
        }
        return CacheReader(request, response, medium, options, time: time)
    }
}
