/// Runs `work`, and waits for it no longer than `duration`.
///
/// - Parameters:
///   - duration: how long; work that takes longer goes on, and nothing waits for it.
///   - time: the clock.
///   - work: what is to be done; runs in a task of its own, which is not cancelled.
/// - Returns: whether it has ended; false as well if the waiting task was cancelled.
func finishing(
    within duration: Duration,
    time: any TimeSource,
    work: @escaping @Sendable () async -> Void
) async -> Bool {
    let end = Latch<Bool>()
    Task {
        await work()
        end.complete(with: .success(true))
    }
    let timer = Task {
        do {
            try await time.sleep(for: duration)
            end.complete(with: .success(false))
        } catch {
            // The work has ended.
        }
    }
    defer { timer.cancel() }
    guard case .success(let hasEnded) = await end.wait() else { return false }
    return hasEnded
}
