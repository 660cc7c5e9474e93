#if HTTPClient
import DequeModule
import HTTPTypes
import NIOCore

/// The state of one exchange; every input returns an action to perform outside the lock.
///
/// `awaitingHead` → `streaming` → `ended`; `cancel` and failures lead to `ended` from every state.
struct ExchangeState {
    typealias HeadContinuation = CheckedContinuation<Exchange.HeadResult, Never>
    typealias PartContinuation = CheckedContinuation<Exchange.PartResult, Never>

    /// Independent steps to perform after the lock is released, each of which may be missing.
    struct Action {
        var head: (HeadContinuation, Exchange.HeadResult)?
        var part: (PartContinuation, Exchange.PartResult)?
        var resumeReading: (@Sendable () -> Void)?
        var cancelRequest: (@Sendable () -> Void)?

        func perform() {
            if let (continuation, result) = head { continuation.resume(returning: result) }
            if let (continuation, result) = part { continuation.resume(returning: result) }
            resumeReading?()
        }
    }

    /// The number of bytes that may wait here before the connection pauses reading.
    static let readAhead = 256 << 10
    /// The number of pieces from which short ones are copied together.
    ///
    /// Each keeps its whole read buffer alive: a thousand of one byte would take many times the
    /// bytes that are counted.
    static let maximumPieces = 8

    private var cancelRequest: (@Sendable () -> Void)?
    private var head: HTTPResponse?
    private var headWaiter: HeadContinuation?
    private var partWaiter: PartContinuation?
    private var parts = Deque<ByteBuffer>()
    private var bufferedBytes = 0
    /// Resumes reading of the connection; set while it is paused.
    private var resumeReading: (@Sendable () -> Void)?
    /// The local address of the connection.
    private(set) var localAddress: String?
    /// Set once: success is the end of a complete body.
    private var end: Result<Void, TransportError>?
    var isCancelled: Bool {
        guard case .failure(let error) = end else { return false }
        return error.kind == .cancelled
    }

    /// Returns false if the exchange was cancelled before the request is sent.
    mutating func willSend(
        from localAddress: String?,
        cancelRequest: @escaping @Sendable () -> Void
    ) -> Bool {
        guard end == nil else { return false }
        self.localAddress = localAddress
        self.cancelRequest = cancelRequest
        return true
    }

    mutating func waitForHead(
        _ continuation: HeadContinuation
    ) -> Exchange.HeadResult? {
        // A received head is returned even if the body has failed since: the bytes received can
        // still be read.
        if let head, !isCancelled { return .success(head) }
        if case .failure(let error) = end { return .failure(error) }
        headWaiter = continuation
        return nil
    }

    mutating func takePart() -> (Exchange.PartResult, (@Sendable () -> Void)?)? {
        if isCancelled, case .failure(let error) = end { return (.failure(error), nil) }
        if let part = popPart() { return (.success(part), takeResumption()) }
        switch end {
        case .success: return (.success(nil), nil)
        case .failure(let error): return (.failure(error), nil)
        case nil: return nil
        }
    }

    /// The body, if all of it is here in one piece.
    var whole: ByteBuffer? {
        guard case .success = end, parts.count == 1 else { return nil }
        return parts.first
    }

    /// False for a failure: the reader should first see the bytes received before it.
    var isNextAtHand: Bool {
        guard parts.isEmpty else { return true }
        return if case .success = end { true } else { false }
    }

    mutating func waitForPart(
        _ continuation: PartContinuation
    ) -> (Exchange.PartResult, (@Sendable () -> Void)?)? {
        if let early = takePart() { return early }
        precondition(partWaiter == nil, "a transport body has one consumer at a time")
        partWaiter = continuation
        return nil
    }

    mutating func didReceiveHead(_ head: HTTPResponse) {
        guard end == nil else { return }
        self.head = head
    }

    var isFull: Bool { bufferedBytes >= Self.readAhead && end == nil }

    /// Returns true if the connection must not read before `resumeReading` is called.
    mutating func hold(_ resumeReading: @escaping @Sendable () -> Void) -> Bool {
        guard isFull else { return false }
        self.resumeReading = resumeReading
        return true
    }

    mutating func didReceivePart(_ part: ByteBuffer) {
        guard end == nil else { return }
        bufferedBytes += part.readableBytes
        append(part)
    }

    /// All of one read has been handed over.
    ///
    /// The consumer is woken only now, so that a head, a small body and its end cost it one change
    /// of thread.
    mutating func didCompleteRead() -> Action {
        guard end == nil else { return Action() }
        if let head, let waiter = headWaiter {
            headWaiter = nil
            return Action(head: (waiter, .success(head)))
        }
        guard let waiter = partWaiter, let part = popPart() else { return Action() }
        partWaiter = nil
        return Action(part: (waiter, .success(part)), resumeReading: takeResumption())
    }

    /// The head, the body and its end have come at once.
    mutating func didReceiveWhole(_ head: HTTPResponse, _ body: ByteBuffer) -> Action {
        didReceiveHead(head)
        if body.readableBytes > 0 { didReceivePart(body) }
        return didEnd(nil)
    }

    /// The end of the exchange; bytes received before stay readable.
    mutating func didEnd(_ error: TransportError?) -> Action {
        guard end == nil else { return Action() }
        end = error.map { .failure($0) } ?? .success(())
        cancelRequest = nil
        return endWaiters()
    }

    mutating func cancel() -> Action {
        let cancelled = TransportError(.cancelled, "the exchange was cancelled")
        guard end == nil else {
            // A body that loses its last bytes here has not ended for its reader, which would take
            // the bytes before for the whole.
            if case .success = end, !parts.isEmpty { end = .failure(cancelled) }
            parts = []
            bufferedBytes = 0
            return Action()
        }
        end = .failure(cancelled)
        parts = []
        bufferedBytes = 0
        var action = endWaiters()
        action.cancelRequest = cancelRequest
        cancelRequest = nil
        // There is no reader: the connection is closed.
        resumeReading = nil
        return action
    }

    private mutating func endWaiters() -> Action {
        var action = Action()
        if let headWaiter {
            let error = TransportError(.closedEarly, "the connection closed before a response")
            let early = head.flatMap { isCancelled ? nil : .success($0) } ?? end.flatMap { $0.head }
            action.head = (headWaiter, early ?? .failure(error))
        }
        headWaiter = nil
        if let waiter = partWaiter, let (part, resumeReading) = takePart() {
            partWaiter = nil
            action.part = (waiter, part)
            action.resumeReading = resumeReading
        }
        return action
    }

    private mutating func append(_ part: ByteBuffer) {
        guard BodyChunk.isShort(part.readableBytes), parts.count >= Self.maximumPieces,
            var last = parts.popLast()
        else {
            parts.append(part)
            return
        }
        if last.readableBytes + part.readableBytes <= BodyChunk.joinedLength {
            last.writeImmutableBuffer(part)
            parts.append(last)
        } else {
            parts.append(last)
            parts.append(part)
        }
    }

    /// Takes at most 1 MiB, the maximum size of a chunk; the rest stays in front.
    private mutating func popPart() -> ByteBuffer? {
        guard var part = parts.popFirst() else { return nil }
        if part.readableBytes > 1 << 20, let slice = part.readSlice(length: 1 << 20) {
            parts.prepend(part)
            part = slice
        }
        bufferedBytes -= part.readableBytes
        return part
    }

    private mutating func takeResumption() -> (@Sendable () -> Void)? {
        guard bufferedBytes < Self.readAhead else { return nil }
        defer { resumeReading = nil }
        return resumeReading
    }
}

extension Result<Void, TransportError> {
    /// The failure, for a wait for the head; success says nothing about a head.
    fileprivate var head: Exchange.HeadResult? {
        guard case .failure(let error) = self else { return nil }
        return .failure(error)
    }
}
#endif
