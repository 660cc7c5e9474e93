import FoundationEssentials
import HTTPCaching
import HTTPTypes

/// The second half of a request: fetches, validates or completes the remainder of a lookup.
struct Fetch: Sendable {
    typealias Remainder = LookupOperation.Remainder

    let responder: Responder
    let request: CacheRequest
    let remainder: Remainder

    var transfers: Transfers { responder.transfers }
    var responses: ResponseFactory { responder.responses }

    /// Answers a request that the lookup could not; the body may still be in transfer on return.
    func response(in operation: OperationContext) async throws(CacheError) -> CacheResponse {
        do throws(CacheError) {
            let response = try await originResponse(operation)
            if !Invalidation.isSafe(request.method) {
                await responder.invalidate(
                    afterMethod: request.method,
                    target: request.target,
                    status: response.status.code,
                    fields: response.fields
                )
            }
            return response
        } catch {
            guard let stale = try await staleResponse(after: error) else { throw error }
            return stale
        }
    }

    private func originResponse(
        _ operation: OperationContext
    ) async throws(CacheError) -> CacheResponse {
        let shared = transfers.shared(for: request)
        var remainder = remainder
        var asked = request
        var group = shared.group(for: remainder.stored?.head.selectingFields ?? [])
        var isExclusive =
            // A reload wants what no earlier transfer has asked for; what is not cacheable is for
            // one client.
            request.policy == .reload || !request.isCacheable || request.relay?.upload != nil
        // A further round follows if the transfer's response is only for another request, or if a
        // 304 confirms a response that is not stored.
        for _ in 0..<4 {
            let transfer = startTransfer(
                for: asked,
                remainder: remainder,
                shared: shared,
                group: isExclusive ? transfers.exclusiveGroup(group) : group
            )
            operation.forwardPriority(to: transfer.subscription, knowing: asked.priority)
            let outcome = try await answer(of: transfer.subscription, shared: shared)
            if let head = outcome.head, !isSelected(head, of: transfer) {
                let selecting = VaryMatch.selectingFields(
                    response: head.fields,
                    request: request.fields
                )
                isExclusive = isExclusive || group == shared.group(for: selecting)
                group = shared.group(for: selecting)
                continue
            }
            switch outcome {
            case .storing(let generation):
                guard mayShare(generation, of: transfer) else {
                    isExclusive = true
                    continue
                }
                return try await storingResponse(of: transfer, generation: generation)
            case .passing(let head, let bypass):
                let wanted = try wantedRange(of: bypass, head: head)
                if let response = try passThroughResponse(
                    of: transfer,
                    head: head,
                    bypass: bypass,
                    wanted: wanted
                ) {
                    return response
                }
                isExclusive = true
                // The start of a suffix is known by now; the whole stays the whole, whatever length
                // it has for this request.
                if case .suffix = request.range, let end = wanted.end {
                    asked.range = .bounded(wanted.start..<end)
                }
            case .notModified(let confirmation):
                if let confirmation, let stored = remainder.entry(confirmedBy: confirmation),
                    let answer = try await confirmedResponse(
                        from: stored,
                        head: confirmation.freshened
                    )
                {
                    return answer
                }
                // The transfer validates another request's entry, and may still be running.
                if !transfer.subscription.isFirst { isExclusive = true }
                remainder.task = .fetch
                remainder.variants = []
                if case .disk(let entry) = remainder.stored?.body { remainder.lacking = entry }
            case .unsuccessful where request.relay != nil && remainder.isCompletion:
                // The client receives the error response unchanged, with its body.
                remainder = Remainder(task: .fetch, reason: remainder.reason)
            case .unsuccessful(let head, let isStored):
                return try unsuccessfulResponse(
                    head: head,
                    remainder: remainder,
                    isStored: isStored
                )
            }
        }
        throw CacheError(
            .originFailed,
            "\(request.target.redacted) gave no answer that fits the request; try again"
        )
    }

    /// Whether the response to one request is that to another that shares its transfer: until there
    /// is one, nobody knows by which fields it varies.
    private func isSelected(_ head: StoredResponse, of transfer: Transfer) -> Bool {
        guard request.relay == nil else { return true }
        if head.selectingFields.contains(where: { $0.name == "*" }) {
            return transfer.subscription.isFirst
        }
        return head.isSelected(by: request.fields)
    }

    /// Whether the response to one client may answer another that sent its request meanwhile.
    ///
    /// It may where it could be reused at once (RFC 9111 §4).
    private func mayShare(_ generation: SharedTransfers.Generation, of transfer: Transfer) -> Bool {
        guard request.relay != nil, transfer.base == nil, !transfer.subscription.isFirst else {
            return true
        }
        return responder.judge.decision(about: generation.head, for: request).isUse
    }

    /// The wanted bytes of a body that is not stored.
    private func wantedRange(
        of bypass: SharedTransfers.Bypass,
        head: StoredResponse
    ) throws(CacheError) -> WantedRange {
        // The response to HEAD has a length and no body.
        if request.method == .head { return WantedRange(start: 0, end: 0) }
        let wanted = try WantedRange.resolve(
            for: request,
            head: head,
            completeLength: bypass.completeLength
        )
        guard let wanted else { throw lengthUnknown }
        return wanted
    }

    // MARK: Starting

    /// A transfer, and the ranges stored before it began.
    struct Transfer {
        let subscription: Subscription
        let shared: SharedTransfers
        /// The first byte that the transfer requests.
        let start: Int64
        /// The entry that the transfer completes, if it completes one.
        var base: DiskEntry?
        var storedBefore = ByteRangeSet()
    }

    private func startTransfer(
        for request: CacheRequest,
        remainder: Remainder,
        shared: SharedTransfers,
        group: TransferGroup
    ) -> Transfer {
        if case .complete = remainder.task, let stored = remainder.stored,
            case .disk(let entry) = stored.body,
            let transfer = completeTransfer(
                for: request,
                stored: stored,
                entry: entry,
                shared: shared
            )
        {
            return transfer
        }
        var plan = transfers.origins.plan(
            request,
            range: FirstRange.ofTransfer(for: request.range),
            reason: remainder.reason
        )
        var stored: StoredEntry?
        if case .validate = remainder.task, let found = remainder.stored {
            stored = found
            plan.conditionalFields = ConditionalRequest.fields(validating: found.head.fields)
            plan.range = 0..<Int64.max
        }
        if !remainder.variants.isEmpty, case .fetch = remainder.task {
            plan.conditionalFields = ConditionalRequest.fields(
                selectingAmong: remainder.variants.map(\.head.fields)
            )
            plan.range = 0..<Int64.max
        }
        plan.relay?.hasFallback = remainder.mayReplaceError(responder.judge.rules)
        var operation = DownloadOperation(
            storage: responder.storage,
            origins: transfers.origins,
            shared: shared,
            group: group,
            request: request,
            plan: plan,
            base: nil,
            stored: stored
        )
        operation.variants = remainder.variants
        operation.isAfterMiss =
            group == shared.group && (remainder.reason == .uriMiss || remainder.lacking != nil)
        operation.lacking = remainder.lacking?.generation
        let subscription = transfers.join(
            operation,
            at: plan.range.lowerBound,
            horizon: request.firstHorizon ?? .max
        )
        return Transfer(subscription: subscription, shared: shared, start: plan.range.lowerBound)
    }

    /// A transfer for the first gap of an incomplete response that is no longer fresh.
    private func completeTransfer(
        for request: CacheRequest,
        stored: StoredEntry,
        entry: DiskEntry,
        shared: SharedTransfers
    ) -> Transfer? {
        guard let wanted = WantedRange(request.range, completeLength: entry.completeLength)?.bytes,
            let gap = entry.nextGap(in: wanted)
        else { return nil }
        let fetcher = GapFetcher(
            transfers: transfers,
            shared: shared,
            request: request,
            head: stored.head
        )
        let storedBefore = entry.storedRanges
        // Blocks not yet sealed count as stored here: the transfer that writes them is the one to
        // join.
        let unread = storedBefore.gaps(in: wanted).ranges.first
        let position = unread?.lowerBound ?? max(gap.lowerBound, wanted.lowerBound)
        let subscription = fetcher.join(
            entry,
            at: position,
            limit: wanted.upperBound,
            horizon: request.firstHorizon ?? .max,
            validating: stored
        )
        return Transfer(
            subscription: subscription,
            shared: shared,
            start: position,
            base: entry,
            storedBefore: storedBefore
        )
    }

    // MARK: Waiting

    /// Waits until the transfer's head has been judged.
    private func answer(
        of subscription: Subscription,
        shared: SharedTransfers
    ) async throws(CacheError) -> SharedTransfers.Outcome {
        while true {
            let seen = shared.signal.version
            if let answer = subscription.context?.outcome { return answer }
            if let outcome = subscription.outcome {
                // It may have told its response between the two looks.
                if let answer = subscription.context?.outcome { return answer }
                try outcome.get()
                throw CacheError(.originFailed, "the origin gave no answer")
            }
            guard !Task.isCancelled else {
                throw CacheError(.cancelled, "the request was cancelled")
            }
            await shared.signal.wait(after: seen)
        }
    }
}
