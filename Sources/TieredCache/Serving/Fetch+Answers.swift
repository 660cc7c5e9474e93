import FoundationEssentials
import HTTPCaching

// What a request is answered with once the origin was asked.
extension Fetch {
    func storingAnswer(
        _ transfer: Transfer,
        _ generation: SharedTransfers.Generation
    ) async throws(CacheError) -> CacheResponse {
        let entry = generation.entry
        let wanted = try WantedRange.resolve(
            request,
            generation.head,
            completeLength: entry.completeLength
        )
        guard let wanted else { throw lengthUnknown }
        let fetcher = GapFetcher(
            transfers: transfers,
            shared: transfer.shared,
            request: request,
            head: generation.head
        )
        // What was stored is the cache's only if it is of the representation that the origin has.
        let storedBefore = transfer.base === entry ? transfer.storedBefore : ByteRangeSet()
        let opening = EntryOpening(
            entry: entry,
            storage: responder.storage,
            fetcher: fetcher,
            transfer: isNear(transfer, wanted, generation) ? transfer.subscription : nil,
            storedBefore: storedBefore
        )
        // What must not be stored is for the client alone whose request began the exchange.
        let isOwn = storedBefore.isEmpty && transfer.subscription.isFirst
        let head = isOwn ? generation.received ?? generation.head : generation.head
        var content = try responder.content(opening, head, wanted, request)
        let status = CacheStatus.forwarded(
            remainder.reason,
            isStored: entry.isWritable,
            isCollapsed: !transfer.subscription.isFirst
        )
        content.storageError = await responder.storage.keepPin(entry, request)
        return responses.response(
            to: request,
            content,
            as: storedBefore.isEmpty ? .origin : .revalidated,
            status
        )
    }

    /// Whether to wait for a transfer to come to the bytes wanted, rather than to ask for them.
    ///
    /// A transfer that was to bring a part may turn out to bring all, from the first byte on.
    private func isNear(
        _ transfer: Transfer,
        _ wanted: WantedRange,
        _ generation: SharedTransfers.Generation
    ) -> Bool {
        let head = generation.head
        if head.validator == nil || head.flags.contains(.withoutRanges) { return true }
        let stored = generation.entry.storedRanges.ranges.last?.upperBound ?? transfer.start
        return wanted.start - max(stored, transfer.start) <= GapFetcher.worthWaiting
    }

    func passingAnswer(
        _ transfer: Transfer,
        _ head: StoredResponse,
        _ channel: PassThroughChannel,
        _ reason: NotStored,
        _ wanted: WantedRange
    ) throws(CacheError) -> CacheResponse {
        guard !request.isPrefetch else { throw reason.error(for: request) }
        let body = PassThroughReader(
            channel,
            range: wanted.bytes,
            subscription: transfer.subscription
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

    /// A 304: what is stored is delivered; nil where a reader would not come to its end with it.
    func confirmedAnswer(
        _ stored: StoredEntry,
        _ head: StoredResponse
    ) async throws(CacheError) -> CacheResponse? {
        let isStored = stored.diskEntry.map(\.isWritable) ?? true
        let status = CacheStatus.forwarded(remainder.reason, status: 304, isStored: isStored)
        guard request.endsInMiddle(of: stored), case .disk(let entry) = stored.body,
            let wanted = try WantedRange.resolve(request, completeLength: stored.completeLength)
        else { return try await storedResponse(stored, head, .revalidated, status) }
        // Another reader's transfer may be about to bring the rest.
        if let transfer = transfers.transferUnderWay(for: request, entry, wanted) {
            let confirmed = StoredEntry(head: head, entry: entry)
            return try await responder.response(
                from: confirmed,
                entry,
                wanted,
                sharing: transfer,
                request,
                status
            )
        }
        // Or it has brought it between the two looks.
        guard !request.endsInMiddle(of: stored) else { return nil }
        return try await storedResponse(stored, head, .revalidated, status)
    }

    private func storedResponse(
        _ stored: StoredEntry,
        _ head: StoredResponse,
        _ source: ResponseSource,
        _ status: CacheStatus
    ) async throws(CacheError) -> CacheResponse {
        let wanted = try WantedRange.resolve(request, completeLength: stored.completeLength)
        guard let wanted else { throw lengthUnknown }
        let content = try await responder.content(of: stored, head, wanted, request)
        responder.recorder.didRead(Int64(content.counted), from: stored.tier)
        return responses.response(to: request, content, as: source, status)
    }

    // MARK: When the origin fails

    /// An error status; a stored response may stand in for it (RFC 5861 §4).
    func unsuccessfulAnswer(
        _ head: StoredResponse,
        _ remainder: Remainder,
        isStored: Bool
    ) throws(CacheError) -> CacheResponse {
        if StatusCode.isStaleIfErrorStatus(head.status), remainder.stored != nil,
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

    /// What is stored, marked as stale, if the rules allow it for this failure.
    func staleAnswer(after error: CacheError) async throws(CacheError) -> CacheResponse? {
        guard let stored = remainder.stored, remainder.staleOnError != .never else { return nil }
        switch error.code {
        case _ where error.isWithoutAnswer: break
        case .httpStatus where remainder.staleOnError == .error: break
        case .httpStatus
        where request.relay != nil && remainder.mayReplaceError(responder.judge.rules): break
        default: return nil
        }
        responder.recorder.didServeStale(request.key, from: stored.tier)
        return try await storedResponse(
            stored,
            stored.head,
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
