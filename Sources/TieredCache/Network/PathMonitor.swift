#if canImport(Network)
import Dispatch
import Network

/// Watches the path out of the machine by `NWPathMonitor`, on Apple's systems.
///
/// A path that is expensive or constrained counts as metered. Lost addresses are not reported: the
/// system ends their connections itself.
public struct PathMonitor: NetworkMonitor {
    /// Creates a monitor; nothing is watched yet.
    public init() {}

    /// The present status, then every change of it.
    public func events() -> AsyncStream<NetworkEvent> {
        AsyncStream(bufferingPolicy: .bufferingNewest(256)) { continuation in
            let monitor = NWPathMonitor()
            monitor.pathUpdateHandler = { path in
                let status = NetworkStatus(
                    isOnline: path.status == .satisfied,
                    isMetered: path.isExpensive || path.isConstrained
                )
                continuation.yield(.status(status))
            }
            continuation.onTermination = { _ in monitor.cancel() }
            monitor.start(queue: DispatchQueue(label: "tieredcache.network"))
        }
    }
}
#endif
