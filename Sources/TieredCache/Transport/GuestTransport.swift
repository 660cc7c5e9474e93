#if HTTPClient
import HTTPTypes
import SystemPackage

/// The built-in transport of a process that may be a guest of its directory: what the owner may
/// store is asked of the owner, and of the origin where the owner does not answer.
///
/// So two processes fetch a byte once, and it is stored. A guest never depends on the owner: one
/// that is gone, stopped or of another version costs at most ``patience``, one that stops in the
/// middle of a body half of the download's timeout, and one that was silent is not asked again for
/// ``avoidance``.
final class GuestTransport: CancellableTransport {
    /// How long an owner may take to say that it is there, which takes it no look at a disk.
    static let patience = Duration.seconds(1)
    /// How long an owner that was silent is left alone.
    static let avoidance = Duration.seconds(10)

    private struct State {
        var socket: OwnerSocket?
        var avoidedUntil: MonotonicTime?
    }

    private let transport = NIOTransport()
    private let directory: FilePath
    private let isGuest: @Sendable () -> Bool
    private let time: any TimeSource
    private let state = Guarded(State())

    /// Creates a transport.
    ///
    /// - Parameters:
    ///   - directory: the cache directory.
    ///   - time: the clock.
    ///   - isGuest: whether another process owns the directory now.
    init(
        directory: FilePath,
        time: any TimeSource,
        isGuest: @escaping @Sendable () -> Bool
    ) {
        self.directory = directory
        self.time = time
        self.isGuest = isGuest
    }

    func send(
        _ request: TransportRequest
    ) async throws(TransportError) -> TransportResponse {
        if let asked = question(request), var response = try await answer(to: asked) {
            let patience = asked.shared?.patience ?? Self.patience
            response.body = OwnerBody(response.body, patience: patience, time: time) { [self] in
                avoid()
            }
            return response
        }
        return try await transport.send(request)
    }

    func shutdown() async { await transport.shutdown() }

    /// The request as it is put to the owner; nil if it has to be put to the origin.
    private func question(_ request: TransportRequest) -> TransportRequest? {
        guard let shared = request.shared, request.body == nil, request.upload == nil, isGuest(),
            let socket = socket()
        else { return nil }
        return shared.question(request, socket: socket)
    }

    private func socket() -> OwnerSocket? {
        let now = time.monotonicTime()
        return state.withLock { state in
            if let end = state.avoidedUntil, now < end { return nil }
            if let known = state.socket { return known }
            do {
                state.socket = try OwnerSocket(in: directory)
            } catch {
                return nil  // Without its directory there is no owner.
            }
            return state.socket
        }
    }

    /// Leaves the owner alone for a while.
    private func avoid() {
        let now = time.monotonicTime()
        state.withLock { $0.avoidedUntil = now.advanced(by: Self.avoidance) }
    }

    /// The owner's response; nil if it gives none.
    ///
    /// - Throws: ``TransportError`` if the exchange was cancelled.
    private func answer(
        to request: TransportRequest
    ) async throws(TransportError) -> TransportResponse? {
        let sign = SignOfLife()
        var request = request
        let (onStart, onInterim) = (request.onStart, request.onInterim)
        request.onStart = { cancel in
            sign.wait(cancel)
            onStart?(cancel)
        }
        request.onInterim = { response in
            sign.came()
            if response.status != .processing { onInterim?(response) }
        }
        let alarms = [
            time.alarm(after: Self.patience) { sign.giveUpUnlessCome() },
            // It may wait for a slot, or for an origin that this process would reach.
            time.alarm(after: request.shared?.patience ?? Self.patience) { sign.giveUp() },
        ]
        defer { for alarm in alarms { alarm.cancel() } }
        do throws(TransportError) {
            let response = try await transport.send(request)
            guard sign.end(), response.head.headerFields[SharedRequest.failure] == nil else {
                // It does not know this request, could not ask the origin, or cannot tell what it
                // got.
                response.body.cancel()
                return nil
            }
            return response
        } catch {
            if sign.hasGivenUp {
                avoid()
            } else if error.kind == .cancelled || error.kind == .shutDown {
                throw error
            }
            // A long path leads through a descriptor, and the directory may be another one by now.
            state.withLock { $0.socket = nil }
            return nil
        }
    }
}

/// A body that an owner brings; one that stops bringing it has broken it off.
private final class OwnerBody: TransportBody {
    private let body: any TransportBody
    private let patience: Duration
    private let time: any TimeSource
    private let didGiveUp: @Sendable () -> Void
    private let isSilent = Guarded(false)

    init(
        _ body: any TransportBody,
        patience: Duration,
        time: any TimeSource,
        didGiveUp: @escaping @Sendable () -> Void
    ) {
        self.body = body
        self.patience = patience
        self.time = time
        self.didGiveUp = didGiveUp
    }

    var isNextAtHand: Bool { body.isNextAtHand }

    func next() async throws(TransportError) -> BodyChunk? {
        guard !body.isNextAtHand else { return try await body.next() }
        let alarm = time.alarm(after: patience) { [weak self] in self?.giveUp() }
        defer { alarm.cancel() }
        do throws(TransportError) {
            return try await body.next()
        } catch {
            guard isSilent.withLock({ $0 }) else { throw error }
            didGiveUp()
            throw TransportError(.closedEarly, "the owner of the directory is silent")
        }
    }

    private func giveUp() {
        isSilent.withLock { $0 = true }
        body.cancel()
    }

    func cancel() { body.cancel() }
}

/// Whether the owner has said that it is there, and the time that it has for a response.
///
/// States: `waiting` → `came`, both → `ended` by a response, or `silent`, which cancels the
/// exchange.
private final class SignOfLife: Sendable {
    private struct State {
        var hasCome = false
        var isSilent = false
        var hasEnded = false
        var cancel: (@Sendable () -> Void)?
    }

    private let state = Guarded(State())

    var hasGivenUp: Bool { state.withLock { $0.isSilent } }

    /// The exchange has begun; `cancel` ends it, at once where the time was up before.
    func wait(_ cancel: @escaping @Sendable () -> Void) {
        let isLate = state.withLock { state in
            state.cancel = cancel
            return state.isSilent
        }
        if isLate { cancel() }
    }

    func came() { state.withLock { $0.hasCome = true } }

    func giveUpUnlessCome() {
        if !state.withLock({ $0.hasCome }) { giveUp() }
    }

    func giveUp() {
        let cancel = state.withLock { state -> (@Sendable () -> Void)? in
            guard !state.hasEnded else { return nil }
            state.isSilent = true
            return state.cancel
        }
        cancel?()
    }

    /// A response is there.
    ///
    /// - Returns: whether the owner had said before that it is there, and nothing has given up.
    func end() -> Bool {
        state.withLock { state in
            state.hasEnded = true
            return state.hasCome && !state.isSilent
        }
    }
}

extension HTTPResponse.Status {
    /// 102 (RFC 2518 §10.1): the owner has the request and works on it.
    fileprivate static let processing = HTTPResponse.Status(code: 102)
}
#endif
