import HTTPCaching

/// Ends an exchange when no byte came for some time while one was being waited for.
///
/// The time counts only while armed: a sink that writes slowly, or a reader that pauses, is not
/// the origin's silence. Arming costs one lock, so it is done around every pull.
final class DownloadWatchdog: Sendable {
    private struct State {
        var armedAt: MonotonicTime?
        var hasFired = false
    }

    private let timeout: Duration
    private let time: any TimeSource
    private let state = Guarded(State())

    init(timeout: Duration, time: any TimeSource) {
        self.timeout = timeout
        self.time = time
    }

    /// Whether the time ran out.
    var hasFired: Bool { state.withLock { $0.hasFired } }

    /// From now on the origin is expected to send.
    func arm() {
        let now = time.monotonicTime()
        state.withLock { $0.armedAt = now }
    }

    /// It has sent, or nothing is wanted of it; returns the present.
    @discardableResult
    func disarm() -> MonotonicTime {
        state.withLock { $0.armedAt = nil }
        return time.monotonicTime()
    }

    /// Runs `body` and cancels it when the time runs out.
    func watch<Value: Sendable>(_ body: @escaping @Sendable () async -> Value) async -> Value {
        await withTaskGroup(of: Value?.self) { group in
            group.addTask { await body() }
            group.addTask {
                await self.waitForSilence()
                return nil
            }
            // The first to end ends the other; the value comes from the body in any case.
            var value: Value?
            for await result in group {
                group.cancelAll()
                value = value ?? result
            }
            guard let value else { preconditionFailure("the body of a watched exchange ended") }
            return value
        }
    }

    /// Returns when the time ran out, or when cancelled.
    private func waitForSilence() async {
        var wait = timeout
        while true {
            do {
                try await time.sleep(for: wait)
            } catch {
                return  // The exchange is over.
            }
            let now = time.monotonicTime()
            let remaining = state.withLock { state -> Duration? in
                // Not armed: the next arming cannot run out before a whole timeout has passed.
                guard let armedAt = state.armedAt else { return timeout }
                let remaining = timeout - armedAt.duration(to: now)
                state.hasFired = remaining <= .zero
                return remaining > .zero ? remaining : nil
            }
            guard let remaining else { return }
            wait = remaining
        }
    }
}
