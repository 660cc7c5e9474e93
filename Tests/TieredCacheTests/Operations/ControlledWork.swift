import Testing

@testable import TieredCache

/// Transfer work that does nothing until the test says so.
final class ControlledWork: Sendable {
    /// Completed when the work has begun.
    let started = Latch<TransferContext>()
    /// Complete it to let the work return; a cancelled work returns by itself.
    let release = Latch<Void>()
    /// Completed when the work has returned, with what it returned.
    let returned = Latch<Void>()

    var hasStarted: Bool { started.outcome != nil }

    func run(_ context: TransferContext) async -> Result<Void, CacheError> {
        precondition(started.complete(with: .success(context)), "the work ran twice")
        let result = await release.wait() ?? .failure(CacheError(.cancelled, "seen by the work"))
        returned.complete(with: result)
        return result
    }

    func finish() {
        release.complete(with: .success(()))
    }

    func context() async throws -> TransferContext {
        try await #require(started.wait()).get()
    }
}

extension RequestQueue {
    /// Subscribes to transfer work under the test's control.
    func join(
        _ name: String,
        _ work: ControlledWork,
        at offset: Int64 = 0,
        coverage: Range<Int64> = 0..<1_000,
        host: String = "example.com",
        priority: RequestPriority = .normal
    ) -> Subscription {
        join(
            TransferGroup(key: CacheKey(explicit: name)),
            wanting: offset,
            coverage: coverage,
            host: host,
            priority: priority
        ) { await work.run($0) }
    }
}

/// The code of the error that `body` throws, or nil if it returns.
func code(of body: () async throws -> Void) async -> CacheError.Code? {
    do {
        try await body()
    } catch let error as CacheError {
        return error.code
    } catch {
        Issue.record("not a CacheError: \(error)")
    }
    return nil
}
