import HTTPCaching
import HTTPTypes

// Responses whose bodies are read as readers read.
extension Engine {
    /// Answers like ``response(for:)``, but asks the origin in pieces of our own shape.
    ///
    /// A consumer that leaves in the middle, as players do, has then cost little more than it read.
    func streamedResponse(
        for request: CacheRequest,
        deadline: Duration
    ) async throws(CacheError) -> CacheResponse {
        guard let opening = FirstRange.ofReader(for: request.range), request.method == .get else {
            return try await response(for: request)
        }
        var first = request
        first.range = .bounded(opening)
        first.scope = ReaderScope(range: request.range)
        let response: CacheResponse
        do throws(CacheError) {
            response = try await self.response(for: first)
        } catch {
            // An empty body has no first byte to ask for.
            guard error.code == .rangeNotSatisfiable, opening.lowerBound == 0 else { throw error }
            return try await self.response(for: request)
        }
        guard response.status.code < 400 else { return response }
        let wanted = try WantedRange.resolve(request, completeLength: response.completeLength)
        guard let wanted, let body = response.body.source as? FollowingBody else {
            if let wanted, response.range == (wanted.start, wanted.end) { return response }
            return try await self.response(for: request)
        }
        var certainEnd: Int64?
        if case .bounded(let range) = request.range { certainEnd = range.upperBound }
        var options = ReaderOptions()
        options.deadline = deadline
        let medium = EntryMedium(body, opening: opening, options: options.planner)
        let rest = ReaderBody(medium, wanted, certainTo: certainEnd, options)
        return responses.continuing(response, to: request, wanted, rest)
    }
}
