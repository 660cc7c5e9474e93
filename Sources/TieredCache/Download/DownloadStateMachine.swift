package import HTTPCaching
import HTTPTypes

/// Decides the next step of a download.
///
/// Performs no I/O, reads no clock, draws no random number. Every input returns one action, and the
/// runner answers it with the next input:
///
/// | action | inputs that may follow |
/// | --- | --- |
/// | `send` | `didReceiveHead`, `didFail`, `didTimeOut` |
/// | `receive`, `compare` | `didReceive`, `didEndBody`, `didFail`, `didTimeOut`, `didStop` |
/// | `withdraw` | those that follow the action in it |
/// | `wait` | `didWait` |
/// | `resolve` | `didResolve` |
/// | `finish`, `fail` | none |
package struct DownloadStateMachine: Sendable {
    /// An action of the runner.
    package enum Action: Hashable, Sendable {
        /// Make this exchange.
        case send(DownloadRequest)
        /// Hand the head to the sink, then read the body; a `notModified` has none and is the end.
        case receive(DownloadHead.Kind)
        /// Read the body, the first bytes of which are stored and must be the same; then hand the
        /// head to the sink, if there is one: otherwise the body has no other bytes.
        case compare(DownloadHead.Kind?)
        /// Close the exchange, have the sink keep nothing of the generation, continue with another
        /// action.
        indirect case withdraw(then: Action)
        /// Close the exchange, wait, continue.
        case wait(PendingRetry)
        /// Close the exchange, ask the application for a new URL; the current one returned this
        /// status.
        case resolve(status: Int)
        /// Close the exchange: finished.
        case finish(DownloadOutcome.End)
        /// Close the exchange and throw.
        case fail(DownloadFailure)
    }

    /// A wait with a length that is still to be drawn.
    package struct PendingRetry: Hashable, Sendable {
        /// The number of attempts in a row that brought no byte.
        package let attempts: Int
        /// The wait that the origin requested.
        package let retryAfter: Duration?
        /// Whether no wait is needed.
        package let isImmediate: Bool
        /// The failure, in words that fit after `the origin `.
        package let reason: String
        /// Whether to wait for the network; the attempt does not count then.
        package var isForNetwork = false
    }

    /// The use of received bytes.
    package enum ChunkAction: Hashable, Sendable {
        /// They are part of the body.
        case write(at: Int64)
        /// The first `count` of them must equal those stored at `at`; the others are part of the
        /// body and follow them.
        case compare(at: Int64, count: Int)
        /// They are not; continue with this action.
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

    /// A body in reception.
    struct Reception: Hashable {
        /// The offset at which it must end, or nil if its framing decides; more bytes are an error.
        var limit: Int64?
        /// Whether the end of the body is the end of the representation.
        var isWhole: Bool
        /// Whether a last chunk tells the end, which may contradict ``limit``.
        var isChunked = false
        /// The range of the next bytes of the body that are stored and must be the same.
        var comparing: Range<Int64>?
        /// Whether the body has no other bytes than those to compare.
        var isProbe = false
    }

    var plan: DownloadPlan
    /// The requested URL, or the new one that the application has supplied.
    var target: TargetURI
    /// Whether a new URL was requested since the last byte received.
    var hasResolved = false
    /// Where stored bytes have come again since the generation began: its validator holds there,
    /// too.
    var provenTarget: TargetURI?
    /// Whether a URL of the application is in use, so that stored bytes must come again there.
    var isResolved = false
    /// Whether the known target of permanent redirects has failed.
    var distrustsPermanentTarget = false
    /// Whether the origin sends nothing to combine bounded requests by.
    var isUnbounded = false
    var state = State.idle
    var chain: RedirectChain
    /// The generation to combine bytes with; that of the plan until a response begins another.
    var generation: Generation?
    /// Whether a response of an excluded host has begun the generation; nil while it is the plan's.
    var isGenerationExcluded: Bool?
    /// Whether a byte or head of a generation was delivered, or the plan has one.
    var hasGeneration: Bool
    /// The offset of the next missing byte.
    package internal(set) var position: Int64
    /// The end of the bytes received of this representation; repeated bytes are no progress.
    var furthest: Int64
    var attemptsWithoutProgress = 0
    /// Whether the current attempt has brought a byte: its failure does not count then.
    var hasProgressed = false
    var restarts = 0
    /// How often one representation with a validator has replaced another.
    var replacements = 0
    var hasRefreshedRedirect = false
    var bypassesCaches = false
    /// Whether a response has contradicted the stored one, and no generation has begun since.
    var hasContradicted = false
    /// The validator of a representation that a range has contradicted: if the whole has it as
    /// well, the ranges are wrong.
    var contradictedValidator: Validator?
    /// Until a response begins a new generation, every request carries the conditional fields.
    var isRevalidating: Bool
    /// Whether this download has found that the origin mishandles ranges.
    package internal(set) var areRangesUntrusted: Bool

    /// ``DownloadSink/storedRun(near:)``; called if the final URL has to be proven.
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

    /// The URL after the redirects followed so far.
    package var finalTarget: TargetURI { chain.target }
    /// The complete length in bytes, if known.
    package var completeLength: Int64? { generation?.completeLength }

    /// Whether more of the body must arrive before it can end.
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

    /// The wait has ended.
    package mutating func didWait() -> Action {
        precondition(state == .waiting, "waited in \(state)")
        return sendFromStart()
    }

    /// Bytes of the body have arrived; decides before they are written.
    package mutating func didReceive(_ count: Int) -> ChunkAction {
        guard case .receiving(let reception) = state else {
            preconditionFailure("body bytes in \(state)")
        }
        let start = reception.comparing?.lowerBound ?? position
        let (end, overflow) = start.addingReportingOverflow(Int64(count))
        guard !overflow, end <= reception.limit ?? .max else {
            return .instead(contradict("sent more bytes than it announced"))
        }
        guard let comparing = reception.comparing else {
            advance(to: end)
            return .write(at: start)
        }
        return compare(reception, with: comparing, until: end)
    }

    /// Whether the bytes that come next end where the body has to, so that only its last chunk, or
    /// more bytes, will tell whether they can be trusted.
    package func mustBeHeld(_ count: Int) -> Bool {
        guard case .receiving(let reception) = state, reception.isChunked else { return false }
        return (reception.comparing?.lowerBound ?? position) + Int64(count) == reception.limit
    }

    /// Row 25: nothing of the response can be trusted, nor what has come on the same word before.
    private mutating func contradict(_ words: String) -> Action {
        generation = nil
        hasContradicted = true
        return .withdraw(then: restart(.rangesUntrusted(words)))
    }

    private mutating func compare(
        _ reception: Reception,
        with comparing: Range<Int64>,
        until end: Int64
    ) -> ChunkAction {
        var reception = reception
        let upper = min(end, comparing.upperBound)
        reception.comparing = upper < comparing.upperBound ? upper..<comparing.upperBound : nil
        state = .receiving(reception)
        if reception.comparing == nil { provenTarget = chain.target }
        if end > comparing.upperBound { advance(to: end) }
        return .compare(at: comparing.lowerBound, count: Int(upper - comparing.lowerBound))
    }

    /// Bytes only compared, or received before, are no progress: they might come forever.
    private mutating func advance(to end: Int64) {
        position = end
        guard end > furthest else { return }
        furthest = end
        (attemptsWithoutProgress, hasProgressed, hasResolved) = (0, true, false)
    }

    /// The body has ended as its framing says.
    package mutating func didEndBody() -> Action {
        guard case .receiving(let reception) = state else {
            preconditionFailure("end of body in \(state)")
        }
        // The length in its head is that of a GET; no bytes were to come.
        guard plan.method != .head else { return finish(.completed(completeLength: nil)) }
        guard reception.comparing == nil else {
            return attemptFailed("sent less than it announced")
        }
        // Its validator holds here now.
        if reception.isProbe { return send() }
        if let limit = reception.limit, position < limit {
            if reception.isWhole, reception.isChunked {
                return contradict("sent the whole with another length than before")
            }
            return attemptFailed("sent less than it announced")
        }
        // The framing has proven the end, so that a close-delimited body gets its length here.
        if reception.isWhole {
            generation?.completeLength = position
        }
        let wanted = min(plan.range.upperBound, completeLength ?? .max)
        guard position < wanted else {
            return finish(.completed(completeLength: completeLength))
        }
        // Row 5: a legal subset, or row 6: more may follow. The target of the redirects has just
        // responded.
        return plan.policy.maximumRequestLength == nil ? sendFromStart() : send()
    }

    /// The repeated bytes differ from the stored ones (row 28).
    package mutating func didMismatch() -> Action {
        provenTarget = nil
        return restart(.representationChanged)
    }

    /// The application has supplied a new URL, or has none.
    package mutating func didResolve(_ fresh: TargetURI?) -> Action {
        guard case .resolving(let response) = state else {
            preconditionFailure("resolved in \(state)")
        }
        guard let fresh else { return finish(.unsuccessful(response)) }
        target = fresh
        isResolved = true
        return sendFromStart()
    }

    /// The body does not match its coding (row 26): a retry would bring the same.
    package mutating func didFailDecoding() -> Action {
        fail(.unusable("sent a coded body that cannot be decoded"))
    }

    /// The sink wants no more bytes.
    package mutating func didStop() -> Action {
        finish(.stopped(at: position))
    }

    /// No byte arrived within the timeout.
    ///
    /// - Parameter isOffline: whether the machine has no network.
    /// - Returns: the next action.
    package mutating func didTimeOut(isOffline: Bool = false) -> Action {
        if isOffline { return waitForNetwork("sent nothing in time") }
        guard plan.policy.isTimeoutFinal else { return attemptFailed("sent nothing in time") }
        return fail(.timedOut(after: plan.policy.timeout))
    }

    /// Extends the wanted bytes to the end of the body.
    mutating func extendToEnd() {
        plan.range = plan.range.lowerBound..<Int64.max
    }

    /// The machine has lost the address of the exchange: the attempt does not count, a retry
    /// follows.
    package mutating func didLoseAddress() -> Action {
        waitUncounted("can no longer be reached from this address", isForNetwork: false)
    }

    /// The machine has no network: the failed attempt does not count.
    package mutating func waitForNetwork(_ reason: String) -> Action {
        waitUncounted(reason, isForNetwork: true)
    }

    private mutating func waitUncounted(_ reason: String, isForNetwork: Bool) -> Action {
        hasProgressed = false
        state = .waiting
        return .wait(
            PendingRetry(
                attempts: max(1, attemptsWithoutProgress),
                retryAfter: nil,
                isImmediate: !isForNetwork,
                reason: reason,
                isForNetwork: isForNetwork
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
