public import TieredCache

/// A network monitor whose events are scripted by a test.
public final class ScriptedNetworkMonitor: NetworkMonitor {
    private struct State {
        var status: NetworkStatus
        var listeners: [Int: AsyncStream<NetworkEvent>.Continuation] = [:]
        var nextListener = 0
        /// Addresses that were lost before anything listened.
        var lostEarly: [String] = []
    }

    private let state: Guarded<State>

    /// Creates a monitor that reports `status` to each new listener.
    public init(_ status: NetworkStatus = NetworkStatus(isOnline: true)) {
        state = Guarded(State(status: status))
    }

    /// The present status, then the reported events.
    public func events() -> AsyncStream<NetworkEvent> {
        AsyncStream { continuation in
            let number = state.withLock { state in
                state.nextListener += 1
                state.listeners[state.nextListener] = continuation
                continuation.yield(.status(state.status))
                for address in state.lostEarly { continuation.yield(.lostAddress(address)) }
                state.lostEarly = []
                return state.nextListener
            }
            continuation.onTermination = { [weak self] _ in
                self?.state.withLock { _ = $0.listeners.removeValue(forKey: number) }
            }
        }
    }

    /// Reports another status.
    public func report(_ status: NetworkStatus) {
        let listeners = state.withLock { state in
            state.status = status
            return Array(state.listeners.values)
        }
        for listener in listeners { listener.yield(.status(status)) }
    }

    /// Reports that the machine has lost an address; to the first listener if there is none yet.
    public func loseAddress(_ address: String) {
        let listeners = state.withLock { state in
            if state.nextListener == 0 { state.lostEarly.append(address) }
            return Array(state.listeners.values)
        }
        for listener in listeners { listener.yield(.lostAddress(address)) }
    }
}
