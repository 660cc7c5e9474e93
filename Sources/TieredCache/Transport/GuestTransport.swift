#if HTTPClient
import HTTPCaching
import HTTPTypes
import SystemPackage

/// The built-in transport of a process that may be a guest of its directory: what the owner may
/// store is asked of the owner; where that does not answer, what it has stored of it is taken from
/// the directory, and the rest from the origin.
///
/// So two processes fetch a byte once, and it is stored. A guest never depends on the owner: one
/// that is gone, stopped or of another version costs at most ``patience``, and is not asked again
/// for ``avoidance``. One that has said that it is there, and then brings nothing for a quarter of
/// the download's time, may wait for a slow origin: that download alone asks it no more.
final class GuestTransport: CancellableTransport {
    /// How long an owner may take to say that it is there, which takes it no look at a disk.
    static let patience = Duration.seconds(1)
    /// How long to wait before an owner that may not listen yet is asked again.
    static let pause = Duration.milliseconds(10)
    /// How long an owner that was silent is left alone.
    static let avoidance = Duration.seconds(10)

    private struct State {
        var socket: OwnerSocket?
        var avoidedUntil: MonotonicTime?
        /// When the owner was asked the first time of those that it has not answered since.
        var silentSince: MonotonicTime?
        /// When the owner signed LOCK that was last there; one that has gone is not waited for.
        var knownSince: WallTime?
    }

    private let transport = NIOTransport()
    private let directory: FilePath
    private let owner: @Sendable () -> DirectoryOwner?
    private let stored: @Sendable (TransportRequest) async -> TransportResponse?
    private let threads: IOExecutor
    private let time: any TimeSource
    private let state = Guarded(State())

    /// Creates a transport.
    ///
    /// - Parameters:
    ///   - directory: the cache directory.
    ///   - threads: what may wait for the volume of the directory.
    ///   - time: the clock.
    ///   - owner: the process that owns the directory in place of this one now, if one does.
    ///   - stored: the response that the directory has for a request, if it has one.
    init(
        directory: FilePath,
        threads: IOExecutor,
        time: any TimeSource,
        owner: @escaping @Sendable () -> DirectoryOwner?,
        stored: @escaping @Sendable (TransportRequest) async -> TransportResponse?
    ) {
        self.directory = directory
        self.threads = threads
        self.time = time
        self.owner = owner
        self.stored = stored
    }

    func send(
        _ request: TransportRequest
    ) async throws(TransportError) -> TransportResponse {
        guard let owner = owner() else { return try await transport.send(request) }
        if let asked = await question(request),
            var response = try await answer(to: asked, of: owner)
        {
            let patience = asked.shared?.patience ?? Self.patience
            response.body = OwnerBody(response.body, patience: patience, time: time)
            return response
        }
        if let response = await stored(request) { return response }
        return try await transport.send(request)
    }

    func shutdown() async { await transport.shutdown() }

    /// The request as it is put to the owner; nil if it has to be put to the origin.
    private func question(_ request: TransportRequest) async -> TransportRequest? {
        guard let shared = request.shared, !shared.avoidsOwner, request.body == nil,
            request.upload == nil, let socket = await socket()
        else { return nil }
        return shared.question(request, socket: socket)
    }

    private func socket() async -> OwnerSocket? {
        let now = time.monotonicTime()
        let (known, isAvoided) = state.withLock { state in
            (state.socket, state.avoidedUntil.map { now < $0 } ?? false)
        }
        if isAvoided { return nil }
        if let known { return known }
        let directory = directory
        do {
            // A long path leads through a descriptor of the directory.
            let socket = try await threads.run { try OwnerSocket(in: directory) }
            state.withLock { $0.socket = socket }
            return socket
        } catch {
            return nil  // Without its directory there is no owner.
        }
    }

    /// The owner has not said that it is there: leaves it alone for a while, if it had the time.
    ///
    /// - Parameter asked: when it was asked; downloads in a hurry give up before ``patience``.
    private func didMissSign(since asked: MonotonicTime) {
        let now = time.monotonicTime()
        state.withLock { state in
            let since = state.silentSince ?? asked
            let isPatienceOver = since.duration(to: now) >= Self.patience
            state.silentSince = isPatienceOver ? nil : since
            if isPatienceOver { state.avoidedUntil = now.advanced(by: Self.avoidance) }
        }
    }

    /// The owner's response; nil if it gives none.
    ///
    /// - Throws: ``TransportError`` if the owner was silent, or the exchange was cancelled.
    private func answer(
        to request: TransportRequest,
        of owner: DirectoryOwner
    ) async throws(TransportError) -> TransportResponse? {
        let sign = SignOfLife()
        let asked = time.monotonicTime()
        var request = request
        let (onStart, onInterim) = (request.onStart, request.onInterim)
        request.onStart = { cancel in
            sign.wait(cancel)
            onStart?(cancel)
        }
        request.onInterim = { [self] response in
            sign.came()
            state.withLock { $0.silentSince = nil }
            if response.status != .processing { onInterim?(response) }
        }
        let alarms = [
            time.alarm(after: Self.patience) { sign.giveUpUnlessCome() },
            // It may wait for a slot, or for an origin that this process would reach.
            time.alarm(after: request.shared?.patience ?? Self.patience) { sign.giveUp() },
        ]
        defer { for alarm in alarms { alarm.cancel() } }
        do throws(TransportError) {
            let response = try await send(request, to: owner, unless: sign)
            guard sign.end(), response.head.headerFields[SharedRequest.failure] == nil else {
                // It does not know this request, could not ask the origin, or cannot tell what it
                // got.
                response.body.cancel()
                return nil
            }
            return response
        } catch {
            // A long path leads through a descriptor, and the directory may be another one by now.
            state.withLock { $0.socket = nil }
            if sign.hasGivenUp {
                if !sign.hasCome { didMissSign(since: asked) }
                throw .fromOwner("the owner of the directory is silent")
            }
            if error.kind == .cancelled || error.kind == .shutDown { throw error }
            return nil
        }
    }

    /// Puts a request to the owner, again and again where it may not listen yet.
    private func send(
        _ request: TransportRequest,
        to owner: DirectoryOwner,
        unless sign: SignOfLife
    ) async throws(TransportError) -> TransportResponse {
        while true {
            do throws(TransportError) {
                let response = try await transport.send(request)
                state.withLock { $0.knownSince = owner.signedAt }
                return response
            } catch {
                guard error.kind == .connect, !sign.hasGivenUp,
                    state.withLock({ $0.knownSince != owner.signedAt }),
                    owner.isStarting(at: time.wallTime())
                else { throw error }
            }
            do {
                try await time.sleep(for: Self.pause)
            } catch {
                throw TransportError(.cancelled, "the download was cancelled")
            }
        }
    }
}

extension DirectoryOwner {
    /// Whether it became the owner so lately that it may not listen yet.
    func isStarting(at now: WallTime) -> Bool {
        let age = signedAt.duration(to: now)
        return max(age, .zero - age) < GuestTransport.patience
    }
}

/// A body that an owner brings; one that stops bringing it has broken it off.
private final class OwnerBody: TransportBody {
    private let body: any TransportBody
    private let patience: Duration
    private let time: any TimeSource
    private let isSilent = Guarded(false)

    init(_ body: any TransportBody, patience: Duration, time: any TimeSource) {
        self.body = body
        self.patience = patience
        self.time = time
    }

    var isNextAtHand: Bool { body.isNextAtHand }

    func next() async throws(TransportError) -> BodyChunk? {
        // A chunk that is at hand needs no alarm.
        let alarm =
            body.isNextAtHand
            ? nil : time.alarm(after: patience) { [weak self] in self?.giveUp() }
        defer { alarm?.cancel() }
        do throws(TransportError) {
            return try await body.next()
        } catch {
            if isSilent.withLock({ $0 }) {
                throw .fromOwner("the owner of the directory is silent")
            }
            if error.kind == .cancelled || error.kind == .shutDown { throw error }
            throw .fromOwner("the owner of the directory broke off: \(error.description)")
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

    var hasCome: Bool { state.withLock { $0.hasCome } }
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
        if !hasCome { giveUp() }
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
