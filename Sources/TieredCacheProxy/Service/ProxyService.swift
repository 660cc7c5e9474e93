public import ServiceLifecycle

/// A running proxy as a service, which stops at a graceful shutdown.
public struct ProxyService: Service {
    private let stop: @Sendable () async -> Void

    /// Wraps a proxy.
    ///
    /// - Parameter stop: stops the proxy.
    public init(stop: @escaping @Sendable () async -> Void) {
        self.stop = stop
    }

    /// Waits for the shutdown, then stops.
    public func run() async throws {
        do {
            try await gracefulShutdown()
        } catch {
            // The task was cancelled: the proxy is stopped as well.
        }
        await stop()
    }
}
