#if AsyncHTTPClient
import AsyncHTTPClient
import NIOCore
import TieredCache

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
        // A hit is there before this goes on, and sets no other thread to work.
        let task: Task<Success, any Error>
        if #available(macOS 26, iOS 26, tvOS 26, visionOS 26, watchOS 26, *) {
            task = Task.immediate(operation: operation)
        } else {
            task = Task(operation: operation)
        }
        let alarm = SystemTimeSource().alarm(after: .nanoseconds(left.nanoseconds)) {
            task.cancel()
        }
        defer { alarm.cancel() }
        do {
            return try await withTaskCancellationHandler {
                try await task.value
            } onCancel: {
                task.cancel()
            }
        } catch {
            let isLate = task.isCancelled && !Task.isCancelled
            throw isLate ? HTTPClientError.deadlineExceeded : error
        }
    }
}
#endif
