/// Follows a source of pressure and limits a cache accordingly, as long as it lives.
package final class MemoryPressureMonitor: Sendable {
    private let task: Task<Void, Never>

    /// Starts following `source`.
    ///
    /// - Parameters:
    ///   - source: where levels come from.
    ///   - limit: called with each new fraction, on a task; usually
    ///     ``MemoryCache/limit(toFraction:)``. It should hold its cache weakly.
    package init(source: any MemoryPressureSource, limit: @escaping @Sendable (Double) -> Void) {
        task = Task {
            var response = MemoryPressureResponse()
            for await level in source.levels() {
                if let fraction = response.observe(level) { limit(fraction) }
            }
        }
    }

    /// Follows `source` for `cache`, which is not kept alive.
    package convenience init<Key, Value>(
        source: any MemoryPressureSource,
        cache: MemoryCache<Key, Value>
    ) {
        self.init(source: source) { [weak cache] fraction in cache?.limit(toFraction: fraction) }
    }

    deinit {
        task.cancel()
    }
}
