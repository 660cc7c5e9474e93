import HTTPCaching
import HTTPTypes

// Answers whose bodies come from entries.
extension Engine {
    /// Opens an entry for an answer: to be read through, or as a reader reads if that has asked.
    ///
    /// - Parameters:
    ///   - opening: what is read.
    ///   - head: what goes with it.
    ///   - wanted: the bytes that the request is for.
    ///   - request: what is answered.
    /// - Returns: the answer; for a reader with all that it may come to.
    /// - Throws: `.rangeNotSatisfiable`.
    func content(
        _ opening: EntryOpening,
        _ head: StoredResponse,
        _ wanted: WantedRange,
        _ request: CacheRequest
    ) throws(CacheError) -> ResponseFactory.Content {
        let length = opening.entry.completeLength
        var wanted = wanted
        let body: EntryReader
        if let scope = request.scope, head.status < 400,
            let all = try request.wanted(in: scope, completeLength: length)
        {
            wanted = all
            body = EntryReader(opening, from: request.range, all, scope)
        } else {
            body = EntryReader(opening, wanted)
        }
        return ResponseFactory.Content(
            head: head,
            completeLength: length,
            wanted: wanted,
            body: body
        )
    }

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
        var options = ReaderOptions()
        options.deadline = deadline
        var first = request
        first.range = .bounded(opening)
        first.scope = ReaderScope(range: request.range, options: options)
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
        // What does not come from an entry is asked for as a whole.
        guard let wanted, response.range == (wanted.start, wanted.end) else {
            return try await self.response(for: request)
        }
        return response
    }
}
