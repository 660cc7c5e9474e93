public import TieredCache

/// A network monitor whose events are scripted by a test.
public final class ScriptedNetworkMonitor: NetworkMonitor {
    private struct State {
        var status: NetworkStatus
        var listeners: [Int: AsyncStream<NetworkEvent>.Continuation] = [:]
        var nextListener = 0
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

    /// Reports that the machine has lost an address.
    public func loseAddress(_ address: String) {
        let listeners = state.withLock { Array($0.listeners.values) }
        for listener in listeners { listener.yield(.lostAddress(address)) }
    }
}
