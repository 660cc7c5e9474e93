#if canImport(Network)
import Dispatch
import Network

/// Watches the network path with `NWPathMonitor`, on Apple platforms.
///
/// An expensive or constrained path counts as metered. Lost addresses are not reported: the system
/// ends their connections itself.
public struct PathMonitor: NetworkMonitor {
    /// Creates a monitor; nothing is watched yet.
    public init() {}

    /// The current status, then every change.
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
