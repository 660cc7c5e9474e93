import CoreMetrics
import TieredCache

/// Measures how long requests to origins take, from the request to the last byte that was read.
final class RequestDurations: Sendable {
    /// One request that is under way.
    struct Measurement: Sendable {
        fileprivate let durations: RequestDurations
        fileprivate let method: String
        fileprivate let start: MonotonicTime

        /// Records the duration.
        ///
        /// - Parameter result: the status, or the kind of the failure.
        func end(result: String) {
            let duration = start.duration(to: durations.time.monotonicTime())
            durations.timer(method: method, result: result).recordNanoseconds(
                max(0, duration.components.seconds) * 1_000_000_000
                    + max(0, duration.components.attoseconds / 1_000_000_000)
            )
        }
    }

    private struct Kind: Hashable {
        let method: String
        let result: String
    }

    private let factory: any MetricsFactory
    private let time: any TimeSource
    private let timers = Guarded<[Kind: Timer]>([:])

    init(factory: any MetricsFactory, time: any TimeSource) {
        self.factory = factory
        self.time = time
    }

    func begin(method: String) -> Measurement {
        Measurement(durations: self, method: method, start: time.monotonicTime())
    }

    private func timer(method: String, result: String) -> Timer {
        let kind = Kind(method: method, result: result)
        if let timer = timers.withLock({ $0[kind] }) { return timer }
        // Made outside the lock: the factory is not ours.
        let new = Timer(
            label: "tieredcache_origin_request_duration",
            dimensions: [("method", method), ("result", result)],
            factory: factory
        )
        timers.withLock { $0[kind] = new }
        return new
    }
}
