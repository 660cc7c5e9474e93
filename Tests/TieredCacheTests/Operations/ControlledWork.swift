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

/// A request queue, and by their names the resources whose transfers it runs.
final class QueueBench: Sendable {
    let queue: RequestQueue
    private let resources = Guarded<[String: SharedTransfers]>([:])
    private let joins = Guarded<UInt64>(0)

    init(
        limits: RequestQueueStateMachine.Limits = .init(),
        executor: (any TaskExecutor)? = nil
    ) {
        queue = RequestQueue(limits: limits, executor: executor)
    }

    func resource(_ name: String) -> SharedTransfers {
        resources.withLock { resources in
            if let known = resources[name] { return known }
            let made = SharedTransfers(group: TransferGroup(key: CacheKey(explicit: name))) {}
            resources[name] = made
            return made
        }
    }

    /// Subscribes to transfer work.
    func join(
        _ name: String,
        selector: String = "",
        at offset: Int64 = 0,
        coverage: Range<Int64> = 0..<1_000,
        host: String = "example.com",
        priority: RequestPriority = .normal,
        within maximumDistance: Int64? = nil,
        horizon: Int64 = .max,
        stopsAtOthers: Bool = false,
        work: @escaping RequestQueue.Work
    ) -> Subscription {
        let resource = resource(name)
        let number = joins.withLock { joins in
            joins += 1
            return joins
        }
        return resource.join(
            SharedTransfers.Demand(
                group: TransferGroup(key: resource.group.key, selector: selector),
                offset: offset,
                number: number,
                want: ResourceState.Want(priority: priority, horizon: horizon),
                maximumDistance: maximumDistance
            ),
            orStart: SharedTransfers.NewTransfer(
                queue: queue,
                host: host,
                coverage: coverage,
                stopsAtOthers: stopsAtOthers,
                work: work
            )
        )
    }

    /// Subscribes to transfer work under the test's control.
    func join(
        _ name: String,
        _ work: ControlledWork,
        at offset: Int64 = 0,
        coverage: Range<Int64> = 0..<1_000,
        host: String = "example.com",
        priority: RequestPriority = .normal
    ) -> Subscription {
        join(name, at: offset, coverage: coverage, host: host, priority: priority) {
            await work.run($0)
        }
    }

    func suspend() { queue.suspend() }

    func resume() { queue.resume() }

    func cancelAll(with error: CacheError = .leftTransfer) {
        let all = resources.withLock { $0.values.map(\.self) }
        let cancelled = all.map { ($0, $0.cancelAll(with: error)) }
        for (resource, cancelled) in cancelled { resource.didCancelAll(cancelled) }
    }

    func shutdown() async {
        queue.refuse()
        cancelAll(with: .queueShutDown)
        await queue.waitUntilDrained()
    }

    func snapshot() -> RequestQueueSnapshot { queue.snapshot() }

    /// Whether a transfer of a resource has a subscriber, or a subscriber a transfer.
    var isInUse: Bool {
        resources.withLock { resources in
            resources.values.contains { resource in
                resource.state.withLock { !$0.resource.transfers.isEmpty || !$0.contexts.isEmpty }
            }
        }
    }
}

extension Subscription {
    /// Waits until the transfer has ended; cancelling the waiting task leaves.
    func value() async throws(CacheError) {
        while true {
            let seen = context?.shared.signal.version
            if let outcome { return try outcome.get() }
            if Task.isCancelled { cancel() }
            if let context, let seen { await context.shared.signal.wait(after: seen) }
        }
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
