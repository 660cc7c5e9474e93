package import HTTPCaching
import HTTPTypes

/// Decides what a download does next.
///
/// Performs no I/O, reads no clock, draws no random number.
/// Every input returns one action, and the runner answers it with the next input:
///
/// | action | inputs that may follow |
/// | --- | --- |
/// | `send` | `didReceiveHead`, `didFail`, `didTimeOut` |
/// | `receive`, `compare` | `didReceive`, `didEndBody`, `didFail`, `didTimeOut`, `didStop` |
/// | `wait` | `didWait` |
/// | `resolve` | `didResolve` |
/// | `finish`, `fail` | none |
package struct DownloadStateMachine: Sendable {
    /// What the runner does.
    package enum Action: Hashable, Sendable {
        /// Make this exchange.
        case send(DownloadRequest)
        /// Hand the head to the sink, then pull the body; a `notModified` has none and is the end.
        case receive(DownloadHead.Kind)
        /// Pull the body, whose first bytes are stored and must come again; hand the head to the
        /// sink when they have, if there is one: else the body has no others.
        case compare(DownloadHead.Kind?)
        /// Close the exchange, wait, go on.
        case wait(PendingRetry)
        /// Close the exchange, ask the application for a fresh URL; the present one gave this
        /// status.
        case resolve(status: Int)
        /// Close the exchange: done.
        case finish(DownloadOutcome.End)
        /// Close the exchange and throw.
        case fail(DownloadFailure)
    }

    /// A wait whose length is still to be drawn.
    package struct PendingRetry: Hashable, Sendable {
        /// How many attempts in a row brought no byte.
        package let attempts: Int
        /// What the origin asked for.
        package let retryAfter: Duration?
        /// Whether there is no need to wait.
        package let isImmediate: Bool
        /// What failed, in words that fit after `the origin `.
        package let reason: String
        /// Whether to wait for the network; the attempt then does not count.
        package var isForNetwork = false
    }

    /// What to do with bytes that arrived.
    package enum ChunkAction: Hashable, Sendable {
        /// They are part of the body.
        case write(at: Int64)
        /// The first `count` of them must be the same as those stored at `at`; the others are part
        /// of the body and follow them.
        case compare(at: Int64, count: Int)
        /// They are not; go on with this action.
        case instead(Action)
    }

    enum State: Hashable {
        case idle  // → awaitingHead
        case awaitingHead(DownloadRequest)  // → receiving, waiting, resolving, finished
        case receiving(Reception)  // → awaitingHead, waiting, finished
        case waiting  // → awaitingHead
        case resolving(HTTPResponse)  // → awaitingHead, finished
        case finished
    }

    /// A body that is being received.
    struct Reception: Hashable {
        /// The offset where it must end, or nil where its framing says; more is a breach.
        var limit: Int64?
        /// Whether the end of the body is the end of the representation.
        var isWhole: Bool
        /// The next bytes of the body where they are stored and must be the same.
        var comparing: Range<Int64>?
        /// Whether the body has no other bytes than those to compare.
        var isProbe = false
    }

    var plan: DownloadPlan
    /// The requested URL, or the fresh one that the application has given instead.
    var target: TargetURI
    /// Whether a fresh URL was asked for since the last byte that arrived.
    var hasResolved = false
    /// Where stored bytes have come again since the generation began: its validator counts there
    /// too.
    var provenTarget: TargetURI?
    /// Whether any fresh URL is in use, so that it has to show that it leads to the same bytes.
    var isResolved = false
    /// Whether what permanent redirects led to before was no good.
    var distrustsPermanentTarget = false
    /// Whether the origin gives nothing to join bounded requests by.
    var isUnbounded = false
    var state = State.idle
    var chain: RedirectChain
    /// What bytes may be joined to; that of the plan until a response begins another.
    var generation: Generation?
    /// Whether any byte or head of a generation was handed on, or is held by the plan.
    var hasGeneration: Bool
    /// The offset of the next byte that is missing.
    package internal(set) var position: Int64
    /// How far this representation has been brought; what comes again from before is no progress.
    var furthest: Int64
    var attemptsWithoutProgress = 0
    /// Whether the present attempt has brought a byte: then its failure does not count.
    var hasProgressed = false
    var restarts = 0
    /// How often one representation with a validator has taken the place of another.
    var replacements = 0
    var hasRefreshedRedirect = false
    var bypassesCaches = false
    /// Whether an answer has contradicted what is stored, and no generation has begun since.
    var hasContradicted = false
    /// The validator whose representation a range has contradicted: if the whole has it as well,
    /// the ranges are wrong.
    var doubted: Validator?
    /// Until a response begins a new generation, every request carries the conditional fields.
    var isRevalidating: Bool
    /// Whether this download has caught the origin at answering ranges wrongly.
    package internal(set) var areRangesUntrusted: Bool

    /// ``DownloadSink/storedRun(near:)``; asked where the URL that answers has to be proven.
    let storedRun: @Sendable (Int64) -> Range<Int64>?

    package init(
        _ plan: DownloadPlan,
        storedRun: @escaping @Sendable (Int64) -> Range<Int64>? = { _ in nil }
    ) {
        self.plan = plan
        self.storedRun = storedRun
        target = plan.target
        chain = RedirectChain(target: plan.target, method: plan.method)
        generation = plan.generation
        hasGeneration = plan.generation != nil
        isRevalidating = !plan.conditionalFields.isEmpty
        position = plan.range.lowerBound
        furthest = plan.range.lowerBound
        areRangesUntrusted = plan.policy.areRangesUntrusted
        bypassesCaches = plan.bypassesCaches
    }

    /// The URL behind the redirects followed so far.
    package var finalTarget: TargetURI { chain.target }
    /// The complete length where it is known.
    package var completeLength: Int64? { generation?.completeLength }

    /// Whether more of the body must come before it can end.
    package var isMidBody: Bool {
        guard case .receiving(let reception) = state, !isComparing else { return false }
        return position < reception.limit ?? .max
    }

    /// Whether the next bytes of the body are to be compared with stored ones.
    package var isComparing: Bool {
        guard case .receiving(let reception) = state else { return false }
        return reception.comparing != nil
    }

    /// The first action.
    package mutating func start() -> Action {
        precondition(state == .idle, "started twice")
        guard !plan.range.isEmpty else { return finish(.completed(completeLength: nil)) }
        return sendFromStart()
    }

    /// The wait is over.
    package mutating func didWait() -> Action {
        precondition(state == .waiting, "waited in \(state)")
        return sendFromStart()
    }

    /// Bytes of the body arrived; decides before they are written.
    package mutating func didReceive(_ count: Int) -> ChunkAction {
        guard case .receiving(let reception) = state else {
            preconditionFailure("body bytes in \(state)")
        }
        let start = reception.comparing?.lowerBound ?? position
        let (end, overflow) = start.addingReportingOverflow(Int64(count))
        guard !overflow, end <= reception.limit ?? .max else {
            // Row 25: none of them can be believed.
            return .instead(restart(.rangesUntrusted("sent more bytes than it announced")))
        }
        guard let comparing = reception.comparing else {
            advance(to: end)
            return .write(at: start)
        }
        return compare(reception, comparing, end)
    }

    private mutating func compare(
        _ reception: Reception,
        _ comparing: Range<Int64>,
        _ end: Int64
    ) -> ChunkAction {
        var reception = reception
        let upper = min(end, comparing.upperBound)
        reception.comparing = upper < comparing.upperBound ? upper..<comparing.upperBound : nil
        state = .receiving(reception)
        if reception.comparing == nil { provenTarget = chain.target }
        if end > comparing.upperBound { advance(to: end) }
        return .compare(at: comparing.lowerBound, count: Int(upper - comparing.lowerBound))
    }

    /// Bytes that are only compared, or came before, are no progress: they might come for ever.
    private mutating func advance(to end: Int64) {
        position = end
        guard end > furthest else { return }
        furthest = end
        (attemptsWithoutProgress, hasProgressed, hasResolved) = (0, true, false)
    }

    /// The body ended as its framing says.
    package mutating func didEndBody() -> Action {
        guard case .receiving(let reception) = state else {
            preconditionFailure("end of body in \(state)")
        }
        guard plan.method != .head else { return finish(.completed(completeLength: nil)) }
        guard reception.comparing == nil else {
            return attemptFailed("sent less than it announced")
        }
        // Its validator counts here now.
        if reception.isProbe { return send() }
        if let limit = reception.limit, position < limit {
            return attemptFailed("sent less than it announced")
        }
        if reception.isWhole {
            generation?.completeLength = position
        }
        let wanted = min(plan.range.upperBound, completeLength ?? .max)
        guard position < wanted else {
            return finish(.completed(completeLength: completeLength))
        }
        // Row 5: a legal subset, or row 6: more may follow. What the redirects led to has just
        // answered.
        return plan.policy.maximumRequestLength == nil ? sendFromStart() : send()
    }

    /// The bytes that came again are not those that are stored (row 28).
    package mutating func didMismatch() -> Action {
        provenTarget = nil
        return restart(.representationChanged)
    }

    /// The application has given a fresh URL, or has none.
    package mutating func didResolve(_ fresh: TargetURI?) -> Action {
        guard case .resolving(let response) = state else {
            preconditionFailure("resolved in \(state)")
        }
        guard let fresh else { return finish(.unsuccessful(response)) }
        target = fresh
        isResolved = true
        return sendFromStart()
    }

    /// The body is not what its coding says (row 26): asking again would bring the same.
    package mutating func didFailDecoding() -> Action {
        fail(.unusable("sent a coded body that cannot be decoded"))
    }

    /// The sink wants no more.
    package mutating func didStop() -> Action {
        finish(.stopped(at: position))
    }

    /// Nothing arrived for the time allowed.
    ///
    /// - Parameter isOffline: whether the machine has no network.
    /// - Returns: what to do.
    package mutating func didTimeOut(isOffline: Bool = false) -> Action {
        if isOffline { return waitForNetwork("sent nothing in time") }
        guard plan.policy.isTimeoutFinal else { return attemptFailed("sent nothing in time") }
        return fail(.timedOut(after: plan.policy.timeout))
    }

    /// Wants the rest of the body as well from now on.
    mutating func extendToEnd() {
        plan.range = plan.range.lowerBound..<Int64.max
    }

    /// The address that the exchange went out from is gone: nobody's fault, and worth another try.
    package mutating func didLoseAddress() -> Action {
        hasProgressed = false
        state = .waiting
        return .wait(
            PendingRetry(
                attempts: max(1, attemptsWithoutProgress),
                retryAfter: nil,
                isImmediate: true,
                reason: "can no longer be reached from this address"
            )
        )
    }

    /// The machine has no network: what failed does not count.
    package mutating func waitForNetwork(_ reason: String) -> Action {
        hasProgressed = false
        state = .waiting
        return .wait(
            PendingRetry(
                attempts: max(1, attemptsWithoutProgress),
                retryAfter: nil,
                isImmediate: false,
                reason: reason,
                isForNetwork: true
            )
        )
    }

    mutating func finish(_ end: DownloadOutcome.End) -> Action {
        state = .finished
        return .finish(end)
    }

    mutating func fail(_ failure: DownloadFailure) -> Action {
        state = .finished
        return .fail(failure)
    }
}
