import FoundationEssentials
import HTTPCaching
import HTTPTypes

// Responses that are made once the origin has answered.
extension Fetch {
    func storingResponse(
        of transfer: Transfer,
        generation: SharedTransfers.Generation
    ) async throws(CacheError) -> CacheResponse {
        let entry = generation.entry
        let wanted = try WantedRange.resolve(
            for: request,
            head: generation.head,
            completeLength: entry.completeLength
        )
        guard let wanted else { throw lengthUnknown }
        // Bytes stored before count as the cache's only if they are of the origin's representation.
        let storedBefore = transfer.base === entry ? transfer.storedBefore : ByteRangeSet()
        // Fields that must not be stored go only to the client whose request began the exchange.
        let isOwn = storedBefore.isEmpty && transfer.subscription.isFirst
        let head = isOwn ? generation.received ?? generation.head : generation.head
        var content: ResponseContent
        if let body = generation.body, request.expectedDigests.isEmpty {
            content = try responder.content(
                ofFetched: body,
                in: entry,
                head: head,
                wanted: wanted,
                for: request
            )
        } else {
            let opening = EntryOpening(
                entry: entry,
                storage: responder.storage,
                fetcher: GapFetcher(
                    transfers: transfers,
                    shared: transfer.shared,
                    request: request,
                    head: generation.head
                ),
                judge: responder.bodyJudge(for: request),
                transfer: isNear(wanted, to: transfer, generation: generation)
                    ? transfer.subscription : nil,
                storedBefore: storedBefore
            )
            content = try responder.content(of: opening, head: head, wanted: wanted, for: request)
        }
        let status = CacheStatus.forwarded(
            remainder.reason,
            isStored: entry.isWritable,
            isCollapsed: !transfer.subscription.isFirst
        )
        content.storageError = await responder.storage.keepPin(entry, for: request)
        return responses.response(
            to: request,
            content: content,
            as: storedBefore.isEmpty ? .origin : .revalidated,
            status: status
        )
    }

    /// Whether waiting until a transfer reaches the wanted bytes costs less than requesting them.
    ///
    /// A transfer that requested a range may receive the whole representation, from byte 0 on.
    private func isNear(
        _ wanted: WantedRange,
        to transfer: Transfer,
        generation: SharedTransfers.Generation
    ) -> Bool {
        let head = generation.head
        // No second transfer could bring these bytes into the entry, however far they are.
        if head.validator == nil || head.flags.contains(.withoutRanges) { return true }
        let stored = generation.entry.storedRanges.ranges.last?.upperBound ?? transfer.start
        return wanted.start - max(stored, transfer.start) <= GapFetcher.maximumWaitDistance
    }

    /// The response of bytes that are not stored; nil if they are for another request.
    func passThroughResponse(
        of transfer: Transfer,
        head: StoredResponse,
        bypass: SharedTransfers.Bypass,
        wanted: WantedRange
    ) throws(CacheError) -> CacheResponse? {
        let content: ResponseContent
        switch bypass.bytes {
        case .window(let window):
            guard window.delivers(wanted), window.claim() else { return nil }
            content = self.content(of: window, for: transfer, head: head, wanted: wanted)
        case .whole(let body):
            // What only the disk refuses may answer all that wait for it.
            let isShared = bypass.reason.isOfDisk && request.relay == nil
            guard transfer.subscription.isFirst || isShared, request.expectedDigests.isEmpty
            else { return nil }
            content = try responder.content(
                ofFetched: body,
                in: nil,
                head: head,
                wanted: wanted,
                for: request
            )
        }
        // A prefetch has no reader for the bytes.
        guard !request.isPrefetch else { throw bypass.reason.error(for: request) }
        let status = CacheStatus.forwarded(
            remainder.reason,
            isStored: bypass.reason.isByOwner,
            isCollapsed: !transfer.subscription.isFirst,
            detail: bypass.reason.detail
        )
        return responses.response(
            to: request,
            content: content,
            as: .origin,
            status: status,
            notStored: bypass.reason
        )
    }

    private func content(
        of window: WindowBody,
        for transfer: Transfer,
        head: StoredResponse,
        wanted: WantedRange
    ) -> ResponseContent {
        let length = window.completeLength
        // A response with an error status may be cut anywhere, a 206 is a part, and the others have
        // no body.
        let hasBody = head.status < 300 && ![204, 205, 206].contains(head.status)
        let isWhole = hasBody && request.method != .head && wanted.isAll(of: length)
        let body = WindowReader(
            window,
            range: wanted.bytes,
            subscription: transfer.subscription,
            digests: isWhole ? responder.bodyJudge(for: request).digests(of: head) : nil
        )
        return ResponseContent(head: head, completeLength: length, wanted: wanted, body: body)
    }

    /// The response to a 304: the stored bytes; nil if a reader could not reach its end with them.
    func confirmedResponse(
        from stored: StoredEntry,
        head: StoredResponse
    ) async throws(CacheError) -> CacheResponse? {
        let isStored = stored.diskEntry.map(\.isWritable) ?? true
        let status = CacheStatus.forwarded(remainder.reason, status: 304, isStored: isStored)
        guard request.endsInMiddle(of: stored), case .disk(let entry) = stored.body,
            let wanted = try WantedRange.resolve(
                for: request,
                completeLength: stored.completeLength
            )
        else {
            return try await storedResponse(
                from: stored,
                head: head,
                source: .revalidated,
                status: status
            )
        }
        // Another reader's transfer may be fetching the rest.
        if let transfer = transfers.transferUnderWay(
            for: request,
            entry: entry,
            head: stored.head,
            wanted: wanted
        ) {
            let confirmed = StoredEntry(head: head, entry: entry)
            return try await responder.response(
                from: confirmed,
                entry: entry,
                wanted: wanted,
                sharing: transfer,
                for: request,
                status: status
            )
        }
        // Or that transfer has ended between the two checks.
        guard !request.endsInMiddle(of: stored) else { return nil }
        return try await storedResponse(
            from: stored,
            head: head,
            source: .revalidated,
            status: status
        )
    }

    private func storedResponse(
        from stored: StoredEntry,
        head: StoredResponse,
        source: ResponseSource,
        status: CacheStatus
    ) async throws(CacheError) -> CacheResponse {
        let wanted = try WantedRange.resolve(for: request, completeLength: stored.completeLength)
        guard let wanted else { throw lengthUnknown }
        let content = try await responder.content(
            of: stored,
            head: head,
            wanted: wanted,
            for: request
        )
        responder.recorder.didRead(Int64(content.counted), from: stored.tier)
        return responses.response(to: request, content: content, as: source, status: status)
    }

    // MARK: When the origin fails

    /// The response to an error status; a stored response may replace it (RFC 5861 §4).
    func unsuccessfulResponse(
        head: StoredResponse,
        remainder: Remainder,
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
        return responses.response(
            to: request,
            content: content,
            as: .origin,
            status: status,
            isStored: isStored
        )
    }

    /// The stored response, marked as stale, if the rules allow it for this failure.
    func staleResponse(after error: CacheError) async throws(CacheError) -> CacheResponse? {
        guard let stored = remainder.stored, remainder.staleOnError != .never else { return nil }
        switch error.code {
        case _ where error.isWithoutResponse: break
        case .httpStatus where remainder.staleOnError == .error: break
        case .httpStatus
        where request.relay != nil && remainder.mayReplaceError(responder.judge.rules): break
        default: return nil
        }
        responder.recorder.didServeStale(request.key, from: stored.tier)
        return try await storedResponse(
            from: stored,
            head: stored.head,
            source: .stale,
            status: .forwarded(remainder.reason, status: error.status, detail: "stale")
        )
    }

    var lengthUnknown: CacheError {
        CacheError(
            .rangeNotSatisfiable,
            "the length of \(request.target.redacted) is unknown, "
                + "so its last bytes cannot be selected"
        )
    }
}
