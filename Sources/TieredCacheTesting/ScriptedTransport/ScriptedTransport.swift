public import TieredCache

/// A transport without a network: a script answers each request, and all requests are recorded.
public final class ScriptedTransport: Transport {
    /// Answers a request; the number is its index from 0.
    public typealias Script = @Sendable (TransportRequest, Int) -> ScriptedResponse

    private struct State {
        var requests: [TransportRequest] = []
        var uploads: [[UInt8]] = []
        var isShutDown = false
        var bytesPulled = 0
        var waiters: [(count: Int, continuation: CheckedContinuation<Void, Never>)] = []
        var pullWaiters: [(count: Int, continuation: CheckedContinuation<Void, Never>)] = []
    }

    private let script: Script
    private let time: any TimeSource
    private let state = Guarded(State())

    /// Creates a transport.
    ///
    /// - Parameters:
    ///   - time: The clock of delays.
    ///   - script: Answers the requests.
    public init(time: any TimeSource = ManualTimeSource(), script: @escaping Script) {
        self.time = time
        self.script = script
    }

    /// Creates a transport that gives the responses in order and fails any further request.
    ///
    /// - Parameters:
    ///   - responses: The responses in order.
    ///   - time: The clock of delays.
    public convenience init(
        _ responses: [ScriptedResponse],
        time: any TimeSource = ManualTimeSource()
    ) {
        self.init(time: time) { _, index in
            index < responses.count ? responses[index] : ScriptedResponse(failure: .connect)
        }
    }

    /// The requests so far, in order of arrival.
    public var requests: [TransportRequest] { state.withLock { $0.requests } }

    /// The streamed request bodies so far, each read to its end before its request is answered.
    public var uploads: [[UInt8]] { state.withLock { $0.uploads } }

    /// Returns when `count` requests have arrived.
    public func waitForRequests(_ count: Int) async {
        await withCheckedContinuation { continuation in
            let isThere = state.withLock { state in
                guard state.requests.count < count else { return true }
                state.waiters.append((count, continuation))
                return false
            }
            if isThere { continuation.resume() }
        }
    }

    /// The body bytes pulled so far, of all exchanges.
    public var bytesPulled: Int { state.withLock { $0.bytesPulled } }

    /// Returns when `count` body bytes were pulled.
    public func waitForBytesPulled(_ count: Int) async {
        await withCheckedContinuation { continuation in
            let isThere = state.withLock { state in
                guard state.bytesPulled < count else { return true }
                state.pullWaiters.append((count, continuation))
                return false
            }
            if isThere { continuation.resume() }
        }
    }

    private func didPull(_ count: Int) {
        let arrived = state.withLock { state in
            state.bytesPulled += count
            let pulled = state.bytesPulled
            defer { state.pullWaiters.removeAll { $0.count <= pulled } }
            return state.pullWaiters.filter { $0.count <= pulled }.map(\.continuation)
        }
        for waiter in arrived { waiter.resume() }
    }

    /// Answers by the script.
    public func send(
        _ request: TransportRequest
    ) async throws(TransportError) -> TransportResponse {
        let (index, arrived) = try state.withLock { state throws(TransportError) in
            guard !state.isShutDown else { throw TransportError(.shutDown, "scripted") }
            state.requests.append(request)
            let count = state.requests.count
            let arrived = state.waiters.filter { $0.count <= count }.map(\.continuation)
            state.waiters.removeAll { $0.count <= count }
            return (count - 1, arrived)
        }
        for waiter in arrived { waiter.resume() }
        if let upload = request.upload { try await receive(upload) }
        let response = script(request, index)
        let latch = CancellationLatch()
        if response.stallsBeforeHead { await latch.wait() }
        do {
            try await time.sleep(for: response.headDelay)
            try Task.checkCancellation()
        } catch {
            throw TransportError(.cancelled, "the task was cancelled")
        }
        let body = ScriptedBody(response.steps, time: time, latch: latch) { [weak self] count in
            self?.didPull(count)
        }
        var answer = TransportResponse(head: try response.head.get(), body: body)
        if response.comesWhole, response.steps.count == 1, case .bytes(let all) = response.steps[0]
        {
            answer.whole = BodyChunk(all)
        }
        return answer
    }

    private func receive(_ upload: UploadBody) async throws(TransportError) {
        var bytes: [UInt8] = []
        do {
            while let chunk = try await upload.next() {
                chunk.withUnsafeBytes { bytes.append(contentsOf: $0) }
            }
        } catch {
            throw TransportError(.cancelled, "the request body ended early: \(error)")
        }
        let received = bytes
        state.withLock { $0.uploads.append(received) }
    }

    /// Refuses further requests.
    public func shutdown() async {
        state.withLock { $0.isShutDown = true }
    }
}
