import FoundationEssentials
import HTTPCaching

/// Fetches the beginning of a body in advance, and the `moov` box that a player needs to start.
struct BeginningFetch: Sendable {
    /// The maximum number of bytes beyond the requested head, to find `moov` and to fetch it.
    private static let movieLimit: Int64 = 1 << 20

    private let responder: Responder
    private let request: CacheRequest
    /// The length of the beginning in bytes; nil for the whole body.
    private let bytes: Int64?

    /// - Throws: `.invalidArgument` for a length that is not positive.
    init(responder: Responder, request: CacheRequest, bytes: Int64?) throws(CacheError) {
        if let bytes, bytes <= 0 {
            throw CacheError(.invalidArgument, "cannot prefetch \(bytes) bytes")
        }
        self.responder = responder
        self.bytes = bytes
        var request = request
        request.isPrefetch = true
        if request.priority == .normal { request.priority = .prefetch }
        request.range = bytes.map { .bounded(0..<$0) }
        self.request = request
    }

    /// Fetches; `grant` receives the number of bytes wanted beyond the beginning, and returns the
    /// allowed number.
    func run(
        tail grant: @Sendable (Int64) -> Int64 = { $0 }
    ) async throws(CacheError) -> PrefetchResult {
        let response = try await head()
        try response.requireSuccess(of: request)
        var result = PrefetchResult(response)
        while try await response.body.source.next() != nil {}
        result.finish(response)
        // The purpose of a prefetch is to store the bytes.
        if let storageError = response.storageError { throw storageError }
        if let bytes, let length = response.completeLength, length > bytes {
            let budget = grant(Self.movieLimit)
            guard budget > 0 else { return result }
            try await fetchMovieBox(beyond: bytes, length: length, budget: budget, result: &result)
        }
        return result
    }

    /// Requests the first bytes; an empty body has none, and is requested as a whole.
    private func head() async throws(CacheError) -> CacheResponse {
        do throws(CacheError) {
            return try await responder.response(for: request)
        } catch  where error.code == .rangeNotSatisfiable && request.range != nil {
            var whole = request
            whole.range = nil
            return try await responder.response(for: whole)
        }
    }

    /// Fetches the `moov` box if it lies behind the head, so that a player can start.
    private func fetchMovieBox(
        beyond head: Int64,
        length: Int64,
        budget: Int64,
        result: inout PrefetchResult
    ) async throws(CacheError) {
        var locator = MovieBoxLocator(completeLength: length)
        var step = locator.start()
        var budget = budget
        while case .readHeader(let offset) = step {
            let end = min(length, offset + Int64(MovieBoxLocator.headerSize))
            let header = try await fetch(offset..<end, result: &result)
            if offset >= head { budget -= BlockTable.blockSize }
            step = budget > 0 ? locator.didRead(header) : .absent
        }
        guard case .found(let box) = step, box.upperBound > head else { return }
        // The part of the box that lies in the head is stored already.
        let start = max(box.lowerBound, head)
        guard budget > 0 else { return }
        _ = try await fetch(start..<min(box.upperBound, start + budget), result: &result)
    }

    private func fetch(
        _ range: Range<Int64>,
        result: inout PrefetchResult
    ) async throws(CacheError) -> Data {
        var request = request
        request.range = .bounded(range)
        let response = try await responder.response(for: request)
        try response.requireSuccess(of: request)
        let bytes = try await response.body.collect()
        result.add(response)
        return bytes
    }
}
