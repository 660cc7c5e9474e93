import FoundationEssentials
import HTTPCaching
import HTTPTypes
import Logging

/// Answers requests: with stored responses, otherwise with responses of the origin.
final class Responder: Sendable {
    let storage: Storage
    let transfers: Transfers
    let judge: ReuseJudge
    let responses: ResponseFactory
    let time: any TimeSource
    let recorder: Recorder

    /// The keys whose responses are being validated in the background.
    private let revalidations = Guarded<Set<CacheKey>>([])
    /// Whether a validation runs in the background.
    var isRevalidating: Bool { revalidations.withLock { !$0.isEmpty } }

    init(storage: Storage, transfers: Transfers) {
        self.storage = storage
        self.transfers = transfers
        time = storage.time
        recorder = storage.recorder
        judge = ReuseJudge(rules: storage.rules, time: time)
        responses = ResponseFactory(time: time, recorder: recorder)
    }

    /// Answers a request by a lookup and, only if that finds no usable response, a download.
    func response(for request: CacheRequest) async throws(CacheError) -> CacheResponse {
        // A pinned request needs a lookup on disk as well.
        if !request.isPinned, let answer = memoryResponse(request) { return answer }
        let request = transfers.origins.passingRefused(request)
        // The only wait is for the origin, and a cancellation ends it: no task is needed.
        if !Task.isCancelled,
            let remainder = try lookup(request).immediateRemainder()
        {
            return try await Fetch(responder: self, request: request, remainder: remainder)
                .response(in: OperationContext(priority: request.priority))
        }
        return try await operation(for: request).value()
    }

    /// Invalidates the entries that a successful unsafe request makes unusable (RFC 9111 §4.4).
    ///
    /// They are validated before their next use. To be called after the response, which says whether
    /// there is anything to invalidate.
    func invalidate(
        afterMethod method: HTTPRequest.Method,
        target: TargetURI,
        status: Int,
        fields: HTTPFields
    ) async {
        let targets = Invalidation.targets(
            method: method,
            target: target,
            status: status,
            fields: fields
        )
        for target in targets { await storage.invalidate(CacheKey(target)) }
    }

    /// The operation of a request; nothing happens before it is started.
    func operation(
        for request: CacheRequest
    ) -> CombinedOperation<CacheResponse, LookupOperation.Remainder> {
        let request = transfers.origins.passingRefused(request)
        return CombinedOperation(
            priority: request.priority,
            lookup: { [self] () async throws(CacheError) in
                switch try await lookup(request).perform() {
                case .complete(let finding):
                    return .complete(try await response(to: request, finding: finding))
                case .incomplete(let remainder):
                    return .incomplete(remainder)
                }
            },
            download: { [self] (remainder, context) async throws(CacheError) in
                let fetch = Fetch(responder: self, request: request, remainder: remainder)
                let response = try await fetch.response(in: context)
                if response.body.source.storageKey == nil {
                    await storage.keepPin(nil, for: request)
                }
                return response
            },
            didEnd: { [reports = request.reports] outcome in
                switch outcome {
                case .success(let response):
                    let source = response.body.source
                    // Weak: the reports outlive a body that the application has released.
                    reports?.didRespond { [weak source] in source?.mayFetch ?? false }
                case .failure:
                    reports?.didFail()
                }
            }
        )
    }

    /// Decides about the bodies that answer a request.
    func bodyJudge(for request: CacheRequest) -> BodyJudge {
        BodyJudge(storage: storage, origins: transfers.origins, request: request)
    }

    func lookup(_ request: CacheRequest) -> LookupOperation {
        LookupOperation(storage: storage, transfers: transfers, judge: judge, request: request)
    }

    /// Responds with the finding of a lookup.
    private func response(
        to request: CacheRequest,
        finding: LookupOperation.Finding
    ) async throws(CacheError) -> CacheResponse {
        switch finding {
        case .stored(let stored, let wanted, let decision):
            if decision.action == .useAndRevalidate { revalidateInBackground(stored, for: request) }
            return try await response(
                from: stored,
                wanted: wanted,
                decision: decision,
                for: request
            )
        case .underWay(let stored, let entry, let wanted, let transfer):
            return try await response(
                from: stored,
                entry: entry,
                wanted: wanted,
                sharing: transfer,
                for: request
            )
        }
    }

    // MARK: Whole bodies

    func data(for request: CacheRequest) async throws(CacheError) -> Data {
        var changes = 0
        while true {
            do throws(CacheError) {
                let response = try await response(for: request)
                try response.requireSuccess(of: request)
                let bytes = try await response.body.collect()
                keepInMemory(bytes, of: response, for: request)
                return bytes
            } catch {
                changes += 1
                // Nothing was delivered yet, so that the new representation can be read from its
                // start.
                guard error.code == .representationChanged, changes <= 3 else { throw error }
            }
        }
    }

    /// Promotes a complete body that was read from disk or origin.
    private func keepInMemory(_ bytes: Data, of response: CacheResponse, for request: CacheRequest)
    {
        guard request.range == nil, request.isCacheable, response.mayKeepInMemory,
            Int64(bytes.count) <= storage.memory.promotionLimit
        else { return }
        let source = response.body.source
        // It came from memory, or was promoted when it was read from disk; and may be removed since.
        guard (source as? MemoryBody)?.isFetched ?? true else { return }
        let key = source.storageKey ?? request.key
        storage.promote(bytes, head: response.head, key: key, generation: source.generation) {
            source.isSuperseded
        }
    }

    func bytes(
        for request: CacheRequest,
        range: Range<Int64>?
    ) async throws(CacheError) -> ResponseBody {
        var request = request
        if let range {
            guard range.lowerBound >= 0, !range.isEmpty else {
                throw CacheError(.invalidArgument, "the range \(range) is empty or negative")
            }
            request.range =
                range.upperBound == .max
                ? .openEnded(from: range.lowerBound) : .bounded(range)
        }
        let response = try await response(for: request)
        try response.requireSuccess(of: request)
        return response.body
    }

    /// Responds like ``response(for:)``, but requests pieces of the size that a reader would
    /// request.
    ///
    /// A consumer that stops early, as players do, then costs little more than the bytes that it
    /// read.
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
        first.readDeadline = deadline
        let response: CacheResponse
        do throws(CacheError) {
            response = try await self.response(for: first)
        } catch {
            // An empty body has no first byte to request.
            guard error.code == .rangeNotSatisfiable, opening.lowerBound == 0 else { throw error }
            return try await self.response(for: request)
        }
        guard response.status.code < 400 else { return response }
        let wanted = try WantedRange.resolve(for: request, completeLength: response.completeLength)
        // A body without an entry is requested as a whole.
        guard let wanted, response.range == (wanted.start, wanted.end) else {
            return try await self.response(for: request)
        }
        return response
    }

    func contains(_ request: CacheRequest) async -> Bool {
        if memoryLookup(request) != nil { return true }
        var request = request
        if request.policy == .protocolDefault {
            // The origin must not be asked, and freshness still matters.
            request.fields[.cacheControl] = "only-if-cached"
        } else {
            request.policy = .cacheOnly
        }
        return await lookup(request).wouldAnswer()
    }

    // MARK: Background

    /// Validates a response that was just served stale (RFC 5861 §3); one validation runs per key.
    func revalidateInBackground(_ stored: StoredEntry, for request: CacheRequest) {
        guard revalidations.withLock({ $0.insert(stored.key).inserted }) else { return }
        var request = request
        // The client has its response and must not receive interim responses of this exchange.
        request.relay?.onInterim = nil
        request.reports = nil
        request.fields = ConditionalRequest.removingConditions(from: request.fields)
        request.priority = .background
        request.range = nil
        let hasValidator = stored.head.facts.hasValidator
        let remainder = LookupOperation.Remainder(
            task: hasValidator ? .validate : .fetch,
            reason: .stale,
            stored: hasValidator ? stored : nil
        )
        Task { [request] in
            defer { revalidations.withLock { _ = $0.remove(stored.key) } }
            do throws(CacheError) {
                let response = try await Fetch(
                    responder: self,
                    request: request,
                    remainder: remainder
                ).response(in: OperationContext(priority: .background))
                guard response.source == .origin else { return }
                while try await response.body.source.next() != nil {}
            } catch {
                // The stale response stays; the next request tries again.
                recorder.logger.debug(
                    "background validation failed",
                    metadata: [LogKeys.error: "\(error)"]
                )
            }
        }
    }
}
