#if HTTPClient
import HTTPCaching
import HTTPTypes
import SystemPackage

/// The built-in transport of a process that may be a guest of its directory: what the owner may
/// store is asked of the owner; where that does not answer, what it has stored of it is taken from
/// the directory, and the rest from the origin.
///
/// So two processes fetch a byte once, and it is stored. A guest never depends on the owner: what
/// one that is gone, stopped, busy or of another version does not bring is another exchange, with
/// the origin, which has the whole timeout. One that was silent from the beginning is not asked
/// again for ``avoidance``.
final class GuestTransport: CancellableTransport {
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
        if let question = await question(request) {
            if let response = try await answer(to: question, of: owner) { return response }
            request.onOwner?(nil)
        }
        var request = request
        if case .brokeOff = request.shared?.failure, await !isThere() {
            // One that has ended has not taken back what it had passed on.
            request.shared?.failure = .noAnswer
        }
        if let response = await stored(request) { return response }
        return try await transport.send(request)
    }

    func shutdown() async { await transport.shutdown() }

    /// The request as it is put to the owner; nil if it has to be put to the origin.
    private func question(_ request: TransportRequest) async -> TransportRequest? {
        guard let shared = request.shared, shared.failure == nil, request.body == nil,
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
    /// - Parameter asked: when it was asked; those in a hurry wait less than
    ///   ``SharedRequest/patience``.
    private func didMissSign(since asked: MonotonicTime) {
        let now = time.monotonicTime()
        state.withLock { state in
            let since = state.silentSince ?? asked
            let isPatienceOver = since.duration(to: now) >= SharedRequest.patience
            state.silentSince = isPatienceOver ? nil : since
            if isPatienceOver { state.avoidedUntil = now.advanced(by: Self.avoidance) }
        }
    }

    /// The owner's response; nil if nothing listens there.
    ///
    /// - Throws: ``TransportError``, one ``TransportError/isFromOwner`` unless the exchange was
    ///   cancelled.
    private func answer(
        to request: TransportRequest,
        of owner: DirectoryOwner
    ) async throws(TransportError) -> TransportResponse? {
        let presence = OwnerPresence(patience: request.shared?.patience ?? SharedRequest.patience) {
            [self, socket = request.socket] presence in ask(presence, at: socket)
        }
        let asked = time.monotonicTime()
        var request = request
        let onInterim = request.onInterim
        request.onInterim = { [self] response in
            presence.didAnswer()
            state.withLock { $0.silentSince = nil }
            if response.status != .processing { onInterim?(response) }
        }
        request.onOwner?(presence)
        var response: TransportResponse
        do throws(TransportError) {
            response = try await send(request, to: owner, unless: presence)
        } catch {
            // A long path leads through a descriptor, and the directory may be another one by now.
            state.withLock { $0.socket = nil }
            if presence.isSilent, !presence.hasAnswered { didMissSign(since: asked) }
            if error.kind == .connect, !presence.isSilent { return nil }
            throw presence.failure(error)
        }
        let failure = response.head.headerFields[SharedRequest.failure]
        let answer = OwnerAnswer(taking: &response.head.headerFields)
        guard presence.hasAnswered, failure == nil, answer.target != nil else {
            response.body.cancel()
            throw .fromOwner("the owner of the directory has no answer: \(failure ?? "unknown")")
        }
        response.owner = answer
        response.body = OwnerBody(response.body, presence, end: answer.end)
        return response
    }

    private func ask(_ presence: OwnerPresence, at socket: OwnerSocket?) {
        Task {
            // Where it has not answered, the next look finds that.
            if await isThere(at: socket, within: presence.patience) { presence.didAnswer() }
        }
    }

    private func isThere() async -> Bool {
        guard let socket = await socket() else { return false }
        return await isThere(at: socket, within: SharedRequest.patience)
    }

    /// Asks the owner whether it is there: it refuses at once what is no request of a guest.
    private func isThere(at socket: OwnerSocket?, within patience: Duration) async -> Bool {
        var question = TransportRequest(
            head: HTTPRequest(
                method: .get,
                scheme: nil,
                authority: nil,
                path: SharedRequest.prefix
            )
        )
        question.socket = socket
        // One that is stopped would keep the connection.
        question.onStart = { [time] cancel in _ = time.alarm(after: patience, cancel) }
        do throws(TransportError) {
            let response = try await transport.send(question)
            // To the end, so that the connection is used again.
            while try await response.body.next() != nil {}
            return true
        } catch {
            return false
        }
    }

    /// Puts a request to the owner, again and again where it may not listen yet.
    private func send(
        _ request: TransportRequest,
        to owner: DirectoryOwner,
        unless presence: OwnerPresence
    ) async throws(TransportError) -> TransportResponse {
        while true {
            do throws(TransportError) {
                let response = try await transport.send(request)
                state.withLock { $0.knownSince = owner.signedAt }
                return response
            } catch {
                guard error.kind == .connect, !presence.isSilent,
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
        return max(age, .zero - age) < SharedRequest.patience
    }
}

/// A body that an owner brings; one that stops bringing it has broken it off.
private final class OwnerBody: TransportBody {
    private let body: any TransportBody
    private let presence: OwnerPresence
    /// What it means if the owner breaks it off.
    private let end: OwnerFailure

    init(_ body: any TransportBody, _ presence: OwnerPresence, end: OwnerFailure) {
        self.body = body
        self.presence = presence
        self.end = end
    }

    var isNextAtHand: Bool { body.isNextAtHand }

    func next() async throws(TransportError) -> BodyChunk? {
        do throws(TransportError) {
            return try await body.next()
        } catch {
            throw presence.failure(error, end: end)
        }
    }

    func cancel() { body.cancel() }
}

extension HTTPResponse.Status {
    /// 102 (RFC 2518 §10.1): the owner has the request and works on it.
    fileprivate static let processing = HTTPResponse.Status(code: 102)
}
#endif
