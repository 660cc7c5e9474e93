import FoundationEssentials
import HTTPCaching
import HTTPTypes

/// The second half of a request: what a lookup left over is fetched, validated or completed.
struct Fetch: Sendable {
    typealias Remainder = LookupOperation.Remainder

    let responder: Responder
    let request: CacheRequest
    let remainder: Remainder

    var transfers: Transfers { responder.transfers }
    var responses: ResponseFactory { responder.responses }

    /// Answers a request whose lookup did not; the body may still be on its way then.
    func response(_ operation: OperationContext) async throws(CacheError) -> CacheResponse {
        do throws(CacheError) {
            let response = try await originResponse(operation)
            if !Invalidation.isSafe(request.method) { await invalidate(after: response) }
            return response
        } catch {
            guard let stale = try await staleAnswer(after: error) else { throw error }
            return stale
        }
    }

    /// What a successful unsafe request makes unusable is validated before its next use
    /// (RFC 9111 §4.4).
    private func invalidate(after response: CacheResponse) async {
        let targets = Invalidation.targets(
            method: request.method,
            target: request.target,
            status: response.status.code,
            fields: response.fields
        )
        for target in targets { await responder.storage.invalidate(CacheKey(target)) }
    }

    private func originResponse(
        _ operation: OperationContext
    ) async throws(CacheError) -> CacheResponse {
        let shared = transfers.shared(for: request)
        var remainder = remainder
        var asked = request
        var isAlone =
            request.policy == .reload || !request.isCacheable || request.relay?.upload != nil
        // Further rounds follow where the transfer's answer was for somebody else, or a 304 was
        // about something that is not stored.
        for _ in 0..<3 {
            let transfer = startTransfer(shared, asked, remainder, isAlone: isAlone)
            operation.forwardPriority(to: transfer.subscription)
            switch try await answer(of: transfer.subscription, shared) {
            case .storing(let generation):
                guard mayShare(transfer, generation) else {
                    isAlone = true
                    continue
                }
                return try await storingAnswer(transfer, generation)
            case .passing(let head, let channel, let reason):
                let wanted = try wantedRange(head, channel)
                if channel.brings(wanted), channel.claim() {
                    return try passingAnswer(transfer, head, channel, reason, wanted)
                }
                isAlone = true
                // Of a suffix it is known by now where it begins.
                if let end = wanted.end { asked.range = .bounded(wanted.start..<end) }
            case .notModified(let confirmation):
                if let confirmation, let stored = remainder.entry(confirmedBy: confirmation),
                    let answer = try await confirmedAnswer(stored, confirmation.freshened)
                {
                    return answer
                }
                // The transfer is about what another request holds, and may be there still.
                if !transfer.subscription.isFirst { isAlone = true }
                remainder.task = .fetch
                remainder.variants = []
                if case .disk(let entry) = remainder.stored?.body { remainder.lacking = entry }
            case .unsuccessful where request.relay != nil && remainder.isCompletion:
                // The client is to have the answer as it is, with its body.
                remainder = Remainder(task: .fetch, reason: remainder.reason)
            case .unsuccessful(let head, let isStored):
                return try unsuccessfulAnswer(head, remainder, isStored: isStored)
            }
        }
        throw CacheError(
            .originFailed,
            "\(request.target.redacted) gave no answer that fits the request; try again"
        )
    }

    /// Whether the answer to one client may be given to another that has asked meanwhile: where it
    /// could be used again at once (RFC 9111 §4).
    private func mayShare(_ transfer: Transfer, _ generation: SharedTransfers.Generation) -> Bool {
        guard request.relay != nil, transfer.base == nil, !transfer.subscription.isFirst else {
            return true
        }
        return responder.judge.decision(about: generation.head, for: request).isUse
    }

    /// The bytes that a request wants of a body that is not stored.
    private func wantedRange(
        _ head: StoredResponse,
        _ channel: PassThroughChannel
    ) throws(CacheError) -> WantedRange {
        // The answer to HEAD tells a length and has no body.
        if request.method == .head { return WantedRange(start: 0, end: 0) }
        let wanted = try WantedRange.resolve(
            request,
            head,
            completeLength: channel.completeLength
        )
        guard let wanted else { throw lengthUnknown }
        return wanted
    }

    // MARK: Starting

    /// A transfer, and what was stored before it began.
    struct Transfer {
        let subscription: Subscription
        let shared: SharedTransfers
        /// The first byte that the transfer was asked for.
        let start: Int64
        /// What the transfer was to complete.
        var base: DiskEntry?
        var storedBefore = ByteRangeSet()
    }

    private func startTransfer(
        _ shared: SharedTransfers,
        _ request: CacheRequest,
        _ remainder: Remainder,
        isAlone: Bool
    ) -> Transfer {
        if case .complete = remainder.task, let stored = remainder.stored,
            case .disk(let entry) = stored.body,
            let transfer = completeTransfer(shared, request, stored, entry)
        {
            return transfer
        }
        var plan = transfers.origins.plan(request, range: FirstRange.ofTransfer(for: request.range))
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
            group: isAlone ? transfers.soleGroup(shared.group) : shared.group,
            request: request,
            plan: plan,
            base: nil,
            stored: stored
        )
        operation.variants = remainder.variants
        operation.isAfterMiss =
            !isAlone && (remainder.reason == .uriMiss || remainder.lacking != nil)
        operation.lacking = remainder.lacking?.generation
        let subscription = transfers.join(operation, at: plan.range.lowerBound)
        return Transfer(subscription: subscription, shared: shared, start: plan.range.lowerBound)
    }

    /// A transfer for the first gap of a part that is no longer fresh.
    private func completeTransfer(
        _ shared: SharedTransfers,
        _ request: CacheRequest,
        _ stored: StoredEntry,
        _ entry: DiskEntry
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
        // The unsealed end of a transfer counts: that transfer is the one to join.
        let unread = storedBefore.gaps(in: wanted).ranges.first
        let position = unread?.lowerBound ?? max(gap.lowerBound, wanted.lowerBound)
        let subscription = fetcher.join(
            entry,
            at: position,
            limit: wanted.upperBound,
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

    /// Waits for what the transfer's head means.
    private func answer(
        of subscription: Subscription,
        _ shared: SharedTransfers
    ) async throws(CacheError) -> SharedTransfers.Outcome {
        while true {
            let seen = shared.signal.version
            // In this order: a transfer that ends between the two has answered before.
            let outcome = subscription.outcome
            if let answer = subscription.report?.answer { return answer }
            if let outcome {
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
