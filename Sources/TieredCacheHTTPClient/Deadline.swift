#if HTTPClient
import AsyncHTTPClient
import NIOCore

/// Ends what takes longer than the client's caller allows.
enum Deadline {
    /// Runs `operation`, and cancels it at `deadline`.
    ///
    /// - Throws: the error of `operation`; `HTTPClientError.deadlineExceeded`.
    static func run<Success: Sendable>(
        until deadline: NIODeadline,
        _ operation: @escaping @Sendable () async throws -> Success
    ) async throws -> Success {
        guard deadline < .distantFuture else { return try await operation() }
        let left = deadline - .now()
        guard left > .nanoseconds(0) else { throw HTTPClientError.deadlineExceeded }
        return try await withThrowingTaskGroup(of: Success.self) { group in
            group.addTask(operation: operation)
            group.addTask {
                try await Task.sleep(for: .nanoseconds(left.nanoseconds))
                throw HTTPClientError.deadlineExceeded
            }
            defer { group.cancelAll() }
            guard let success = try await group.next() else { throw CancellationError() }
            return success
        }
    }
}
#endif
