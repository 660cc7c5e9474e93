import TieredCache

/// Runs work for a limited time.
enum Deadline {
    /// Waits for `work` for at most `duration`, then cancels it.
    ///
    /// - Parameters:
    ///   - duration: the limit.
    ///   - time: the clock.
    ///   - work: the work; it must return soon after cancellation.
    /// - Returns: the result of `work`; nil when the limit has passed.
    /// - Throws: the error of `work`.
    static func run<Value: Sendable>(
        within duration: Duration,
        time: any TimeSource,
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
