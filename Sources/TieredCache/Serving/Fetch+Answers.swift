import FoundationEssentials
import HTTPCaching

// What a request is answered with once the origin was asked.
extension Fetch {
    func storingAnswer(
        _ flight: Flight,
        _ generation: Fill.Generation
    ) async throws(CacheError) -> CacheResponse {
        let entry = generation.entry
        let wanted = try WantedRange.resolve(
            request,
            generation.head,
            completeLength: entry.completeLength
        )
        guard let wanted else { throw lengthUnknown }
        let filler = Filler(
            transfers: transfers,
            fill: flight.fill,
            request: request,
            head: generation.head
        )
        // What was held is the cache's only if it is of the representation that the origin has.
        let heldBefore = flight.base === entry ? flight.heldBefore : ByteRangeSet()
        let opening = EntryOpening(
            entry: entry,
            storage: responder.storage,
            filler: filler,
            flight: isNear(flight, wanted, generation) ? flight.subscription : nil,
            heldBefore: heldBefore
        )
        // What must not be stored is for the client alone whose request began the exchange.
        let isOwn = heldBefore.isEmpty && flight.subscription.isFirst
        let head = isOwn ? generation.received ?? generation.head : generation.head
        var content = try responder.content(opening, head, wanted, request)
        let status = CacheStatus.forwarded(
            remainder.reason,
            isStored: entry.isFillable,
            isCollapsed: !flight.subscription.isFirst
        )
        content.trouble = await responder.storage.keepPin(entry, request)
        return responses.response(
            to: request,
            content,
            as: heldBefore.isEmpty ? .origin : .revalidated,
            status
        )
    }

    /// Whether to wait for a flight to come to the bytes wanted, rather than to ask for them.
    ///
    /// A flight that was to bring a part may turn out to bring all, from the first byte on.
    private func isNear(
        _ flight: Flight,
        _ wanted: WantedRange,
        _ generation: Fill.Generation
    ) -> Bool {
        let head = generation.head
        if head.validator == nil || head.flags.contains(.withoutRanges) { return true }
        let held = generation.entry.heldRanges.ranges.last?.upperBound ?? flight.start
        return wanted.start - max(held, flight.start) <= Filler.worthWaiting
    }

    func passingAnswer(
        _ flight: Flight,
        _ head: StoredResponse,
        _ channel: PassThroughChannel,
        _ reason: NotStored,
        _ wanted: WantedRange
    ) throws(CacheError) -> CacheResponse {
        guard !request.isPrefetch else { throw reason.error(for: request) }
        let body = PassThroughReader(
            channel,
            range: wanted.bytes,
            subscription: flight.subscription
        )
        let content = ResponseContent(
            head: head,
            completeLength: channel.completeLength,
            wanted: wanted,
            body: body
        )
        let status = CacheStatus.forwarded(
            remainder.reason,
            isStored: channel.isKept,
            detail: channel.isKept ? nil : reason.detail
        )
        return responses.response(to: request, content, as: .origin, status, notStored: reason)
    }

    /// A 304: what is held is delivered; nil where a reader would not come to its end with it.
    func confirmedAnswer(
        _ held: HeldResponse,
        _ head: StoredResponse
    ) async throws(CacheError) -> CacheResponse? {
        let isStored = held.diskEntry.map(\.isFillable) ?? true
        let status = CacheStatus.forwarded(remainder.reason, status: 304, isStored: isStored)
        guard request.endsInMiddle(of: held), case .disk(let entry) = held.body,
            let wanted = try WantedRange.resolve(request, completeLength: held.completeLength)
        else { return try await heldAnswer(held, head, .revalidated, status) }
        // Another reader's transfer may be about to bring the rest.
        if let flight = transfers.flightUnderWay(for: request, entry, wanted) {
            let confirmed = HeldResponse(head: head, entry: entry)
            return try await responder.response(
                from: confirmed,
                entry,
                wanted,
                sharing: flight,
                request,
                status
            )
        }
        // Or it has brought it between the two looks.
        guard !request.endsInMiddle(of: held) else { return nil }
        return try await heldAnswer(held, head, .revalidated, status)
    }

    private func heldAnswer(
        _ held: HeldResponse,
        _ head: StoredResponse,
        _ source: ResponseSource,
        _ status: CacheStatus
    ) async throws(CacheError) -> CacheResponse {
        let wanted = try WantedRange.resolve(request, completeLength: held.completeLength)
        guard let wanted else { throw lengthUnknown }
        let content = try await responder.content(of: held, head, wanted, request)
        responder.recorder.didRead(Int64(content.counted), from: held.tier)
        return responses.response(to: request, content, as: source, status)
    }

    // MARK: When the origin fails

    /// An error status; a held response may stand in for it (RFC 5861 §4).
    func unsuccessfulAnswer(
        _ head: StoredResponse,
        _ remainder: Remainder,
        isStored: Bool
    ) throws(CacheError) -> CacheResponse {
        if StatusCode.isStaleIfErrorStatus(head.status), remainder.held != nil,
            remainder.staleOnError == .error || request.relay != nil
        {
            throw CacheError.status(head.status, for: request.target)
        }
        let content = ResponseContent(
            head: head,
            completeLength: 0,
            wanted: WantedRange(start: 0, end: 0),
            body: MemoryBody(Data())
        )
        let status = CacheStatus.forwarded(remainder.reason, isStored: isStored)
        return responses.response(to: request, content, as: .origin, status, isStored: isStored)
    }

    /// What is held, marked as stale, if the rules allow it for this failure.
    func staleAnswer(after error: CacheError) async throws(CacheError) -> CacheResponse? {
        guard let held = remainder.held, remainder.staleOnError != .never else { return nil }
        switch error.code {
        case _ where error.isWithoutAnswer: break
        case .httpStatus where remainder.staleOnError == .error: break
        case .httpStatus
        where request.relay != nil && remainder.mayReplaceError(responder.judge.rules): break
        default: return nil
        }
        responder.recorder.didServeStale(request.key, from: held.tier)
        return try await heldAnswer(
            held,
            held.head,
            .stale,
            .forwarded(remainder.reason, status: error.status, detail: "stale")
        )
    }

    var lengthUnknown: CacheError {
        CacheError(
            .rangeNotSatisfiable,
            "\(request.target.redacted) has no known length to count the last bytes from"
        )
    }
}
