import TieredCache

/// Performs the steps of a scripted body, one for each pull.
final class ScriptedBody: TransportBody {
    private let steps: Guarded<ArraySlice<ScriptedResponse.Step>>
    private let time: any TimeSource
    private let latch: CancellationLatch
    private let didPull: @Sendable (Int) -> Void

    init(
        _ steps: [ScriptedResponse.Step],
        time: any TimeSource,
        latch: CancellationLatch,
        didPull: @escaping @Sendable (Int) -> Void
    ) {
        self.steps = Guarded(steps[...])
        self.time = time
        self.latch = latch
        self.didPull = didPull
    }

    func next() async throws(TransportError) -> BodyChunk? {
        while let step = steps.withLock({ $0.popFirst() }) {
            try checkCancellation()
            switch step {
            case .bytes(let bytes):
                guard !bytes.isEmpty else { continue }
                didPull(bytes.count)
                return BodyChunk(bytes)
            case .delay(let duration):
                do { try await time.sleep(for: duration) } catch { try checkCancellation() }
            case .stall:
                await latch.wait()
            case .fail(let error):
                throw error
            }
        }
        try checkCancellation()
        return nil
    }

    func cancel() {
        latch.cancel()
    }

    private func checkCancellation() throws(TransportError) {
        guard Task.isCancelled || latch.isCancelled else { return }
        throw TransportError(.cancelled, "the exchange was cancelled")
    }
}

/// A latch that only cancellation opens.
final class CancellationLatch: Sendable {
    private struct State {
        var isCancelled = false
        var waiter: CheckedContinuation<Void, Never>?
    }

    private let state = Guarded(State())

    var isCancelled: Bool { state.withLock { $0.isCancelled } }

    func wait() async {
        await withTaskCancellationHandler {
            await withCheckedContinuation { continuation in
                let isOver = state.withLock { state in
                    guard !state.isCancelled else { return true }
                    state.waiter = continuation
                    return false
                }
                if isOver { continuation.resume() }
            }
        } onCancel: {
            cancel()
        }
    }

    func cancel() {
        let waiter = state.withLock { state in
            state.isCancelled = true
            defer { state.waiter = nil }
            return state.waiter
        }
        waiter?.resume()
    }
}
