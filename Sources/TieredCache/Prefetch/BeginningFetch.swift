import FoundationEssentials
import HTTPCaching

/// Fetches the beginning of a body before it is asked for, and what else a player needs to start.
struct BeginningFetch: Sendable {
    /// The most that is fetched beyond the head asked for, to find `moov` and to bring it.
    private static let movieLimit: Int64 = 1 << 20

    private let responder: Responder
    private let request: CacheRequest
    /// How much of it; nil for all.
    private let bytes: Int64?

    /// - Throws: `.invalidArgument` for nothing.
    init(_ responder: Responder, _ request: CacheRequest, bytes: Int64?) throws(CacheError) {
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

    /// Fetches; `grant` is told how many bytes are wanted beyond the beginning, and says how many
    /// it may be.
    func run(
        tail grant: @Sendable (Int64) -> Int64 = { $0 }
    ) async throws(CacheError) -> PrefetchResult {
        let response = try await head()
        try response.requireSuccess(of: request)
        var result = PrefetchResult(response)
        while try await response.body.source.next() != nil {}
        result.finish(response)
        // Storing was the purpose.
        if let storageError = response.storageError { throw storageError }
        if let bytes, let length = response.completeLength, length > bytes {
            let budget = grant(Self.movieLimit)
            guard budget > 0 else { return result }
            try await fetchMovieBox(beyond: bytes, length: length, budget, &result)
        }
        return result
    }

    /// The answer to a request for the first bytes; an empty body has none, and is all there is.
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
        _ budget: Int64,
        _ result: inout PrefetchResult
    ) async throws(CacheError) {
        var locator = MovieBoxLocator(completeLength: length)
        var step = locator.start()
        var budget = budget
        while case .readHeader(let offset) = step {
            let end = min(length, offset + Int64(MovieBoxLocator.headerSize))
            let header = try await part(offset..<end, &result)
            if offset >= head { budget -= BlockTable.blockSize }
            step = budget > 0 ? locator.didRead(header) : .absent
        }
        guard case .found(let box) = step, box.upperBound > head else { return }
        // What of the box lies in the head is there.
        let start = max(box.lowerBound, head)
        guard budget > 0 else { return }
        _ = try await part(start..<min(box.upperBound, start + budget), &result)
    }

    private func part(
        _ range: Range<Int64>,
        _ result: inout PrefetchResult
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
