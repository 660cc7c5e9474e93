public import TieredCache

/// A transport without a network: each request is answered by a script, and remembered.
public final class ScriptedTransport: Transport {
    /// Answers a request; the number counts requests from 0.
    public typealias Script = @Sendable (TransportRequest, Int) -> ScriptedResponse

    private struct State {
        var requests: [TransportRequest] = []
        var isShutDown = false
        var bytesPulled = 0
    }

    private let script: Script
    private let time: any TimeSource
    private let state = Guarded(State())

    /// Creates a transport.
    ///
    /// - Parameters:
    ///   - time: What delays are measured by.
    ///   - script: What answers.
    public init(time: any TimeSource = ManualTimeSource(), script: @escaping Script) {
        self.time = time
        self.script = script
    }

    /// Creates a transport that answers one request after the other and fails any further one.
    ///
    /// - Parameters:
    ///   - responses: The answers in their order.
    ///   - time: What delays are measured by.
    public convenience init(
        _ responses: [ScriptedResponse],
        time: any TimeSource = ManualTimeSource()
    ) {
        self.init(time: time) { _, index in
            index < responses.count ? responses[index] : ScriptedResponse(failure: .connect)
        }
    }

    /// The requests so far, in the order in which they came.
    public var requests: [TransportRequest] { state.withLock { $0.requests } }

    /// Body bytes that were pulled so far, of all exchanges.
    public var bytesPulled: Int { state.withLock { $0.bytesPulled } }

    /// Answers by the script.
    public func send(
        _ request: TransportRequest
    ) async throws(TransportError) -> TransportResponse {
        let index = try state.withLock { state throws(TransportError) in
            guard !state.isShutDown else { throw TransportError(.shutDown, "scripted") }
            state.requests.append(request)
            return state.requests.count - 1
        }
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
            self?.state.withLock { $0.bytesPulled += count }
        }
        return TransportResponse(head: try response.head.get(), body: body)
    }

    /// Refuses further requests.
    public func shutdown() async {
        state.withLock { $0.isShutDown = true }
    }
}
