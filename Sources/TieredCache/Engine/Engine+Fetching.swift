import FoundationEssentials
import HTTPCaching

// The second half of a request: what a lookup left over is fetched, validated or completed.
extension Engine {
    typealias Remainder = LookupOperation.Remainder

    /// Answers a request whose lookup did not; the body may still be on its way then.
    func fetch(
        _ request: CacheRequest,
        _ remainder: Remainder,
        _ operation: OperationContext
    ) async throws(CacheError) -> CacheResponse {
        do throws(CacheError) {
            return try await fetchFromOrigin(request, remainder, operation)
        } catch {
            guard let stale = try await staleAnswer(request, remainder, error) else { throw error }
            return stale
        }
    }

    private func fetchFromOrigin(
        _ request: CacheRequest,
        _ remainder: Remainder,
        _ operation: OperationContext
    ) async throws(CacheError) -> CacheResponse {
        let fill = fill(for: request)
        var remainder = remainder
        var isAlone = request.policy == .reload || !request.isCacheable
        // A second round follows where the first flight's answer was for somebody else, or a 304
        // was about something that is not held.
        for _ in 0..<3 {
            let flight = startFlight(fill, request, remainder, isAlone: isAlone)
            operation.forwardPriority(to: flight.subscription)
            switch try await answer(of: flight.subscription, fill) {
            case .storing(let generation):
                return try await storingAnswer(flight, generation, request, remainder)
            case .passing(let head, let channel, let reason):
                if channel.claim() {
                    return try passingAnswer(flight, head, channel, reason, request, remainder)
                }
                isAlone = true
            case .notModified(let head?):
                if let held = remainder.held {
                    return try await confirmedAnswer(request, held, head, remainder)
                }
                remainder.task = .fetch
            case .notModified(nil):
                remainder.task = .fetch
            case .unsuccessful(let head):
                return try unsuccessfulAnswer(request, head, remainder)
            }
        }
        throw CacheError(
            .originFailed,
            "\(request.target.redacted) gave no answer that fits the request; try again"
        )
    }

    // MARK: Starting

    /// A flight, and what was held before it began.
    struct Flight {
        let subscription: Subscription
        let fill: Fill
        let heldBefore: ByteRangeSet
    }

    private func startFlight(
        _ fill: Fill,
        _ request: CacheRequest,
        _ remainder: Remainder,
        isAlone: Bool
    ) -> Flight {
        if case .complete = remainder.task, let held = remainder.held,
            case .disk(let entry) = held.body,
            let flight = completeFlight(fill, request, held, entry)
        {
            return flight
        }
        var plan = plan(request, range: Self.firstRange(of: request))
        var held: HeldResponse?
        if case .validate = remainder.task, let found = remainder.held {
            held = found
            plan.conditionalFields = ConditionalRequest.fields(validating: found.head.fields)
            plan.range = 0..<Int64.max
        }
        let operation = DownloadOperation(
            engine: self,
            fill: fill,
            group: isAlone ? soleGroup(fill.group) : fill.group,
            request: request,
            facts: RequestFacts(
                method: request.method,
                fields: request.fields,
                policy: request.policy
            ),
            plan: plan,
            base: nil,
            held: held
        )
        let subscription = join(operation, at: plan.range.lowerBound)
        return Flight(subscription: subscription, fill: fill, heldBefore: ByteRangeSet())
    }

    /// A flight for the first gap of a part that is no longer fresh.
    private func completeFlight(
        _ fill: Fill,
        _ request: CacheRequest,
        _ held: HeldResponse,
        _ entry: DiskEntry
    ) -> Flight? {
        guard let wanted = request.range.resolvedStart(completeLength: entry.completeLength),
            let gap = entry.nextGap(in: wanted)
        else { return nil }
        let filler = Filler(engine: self, fill: fill, request: request, head: held.head)
        let position = max(gap.lowerBound, wanted.lowerBound)
        let heldBefore = entry.heldRanges
        let subscription = filler.join(
            entry,
            at: position,
            limit: wanted.upperBound,
            validating: held
        )
        return Flight(subscription: subscription, fill: fill, heldBefore: heldBefore)
    }

    /// The bytes that a first request asks for: whole blocks, because only they can be held.
    static func firstRange(of request: CacheRequest) -> Range<Int64> {
        let blockSize: Int64 = 65_536
        switch request.range {
        case nil:
            return 0..<Int64.max
        case .bounded(let range):
            let first = range.lowerBound / blockSize * blockSize
            let (end, overflow) = range.upperBound.addingReportingOverflow(blockSize - 1)
            return first..<(overflow ? .max : end / blockSize * blockSize)
        case .openEnded(let start):
            return (start / blockSize * blockSize)..<Int64.max
        case .suffix:
            // Where the suffix begins is known once the first block has told the length.
            return 0..<blockSize
        }
    }

    // MARK: Waiting

    /// Waits for what the flight's head means.
    private func answer(
        of subscription: Subscription,
        _ fill: Fill
    ) async throws(CacheError) -> Fill.Answer {
        while true {
            let seen = fill.signal.version
            if let id = subscription.flight, let answer = fill.answer(of: id) { return answer }
            if let outcome = subscription.outcome {
                try outcome.get()
                throw CacheError(.originFailed, "the origin gave no answer")
            }
            guard !Task.isCancelled else {
                throw CacheError(.cancelled, "the request was cancelled")
            }
            await fill.signal.wait(after: seen)
        }
    }
}

extension ByteRangeSpec? {
    /// The bytes meant; to `Int64.max` where the end is not known; nil for a suffix then.
    fileprivate func resolvedStart(completeLength: Int64?) -> Range<Int64>? {
        switch self {
        case nil: 0..<(completeLength ?? .max)
        case let spec?:
            if let completeLength {
                spec.resolved(completeLength: completeLength)
            } else {
                switch spec {
                case .bounded(let range): range
                case .openEnded(let start): start..<Int64.max
                case .suffix: nil
                }
            }
        }
    }
}
