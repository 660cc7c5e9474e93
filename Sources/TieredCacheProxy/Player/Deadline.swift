import TieredCache

/// Runs work for a limited time.
enum Deadline {
    /// Waits for `work`, but not longer than `duration`; then `work` is cancelled.
    ///
    /// - Parameters:
    ///   - duration: the limit.
    ///   - time: what measures it.
    ///   - work: what is to be done; it must end when it is cancelled.
    /// - Returns: what `work` returns; nil when the time is over.
    /// - Throws: what `work` throws.
    static func run<Value: Sendable>(
        within duration: Duration,
        _ time: any TimeSource,
        _ work: @escaping @Sendable () async throws -> Value
    ) async throws -> Value? {
        try await withThrowingTaskGroup(of: Value?.self) { group in
            group.addTask { try await work() }
            group.addTask {
                try await time.sleep(for: duration)
                return nil
            }
            defer { group.cancelAll() }
            return try await group.next() ?? nil
        }
    }
}
