public import ServiceLifecycle

/// A running proxy as a service: stops when it is told to shut down gracefully.
public struct ProxyService: Service {
    private let stop: @Sendable () async -> Void

    /// Wraps a proxy.
    ///
    /// - Parameter stop: what stops it.
    public init(stop: @escaping @Sendable () async -> Void) {
        self.stop = stop
    }

    /// Waits for the shutdown, then stops.
    public func run() async throws {
        do {
            try await gracefulShutdown()
        } catch {
            // Cancelled instead: the same end.
        }
        await stop()
    }
}
