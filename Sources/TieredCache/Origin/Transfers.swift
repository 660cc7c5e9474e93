import HTTPCaching
import Synchronization

/// The downloads of one cache: finds or starts the transfer that brings a byte.
final class Transfers: Sendable {
    let storage: Storage
    let origins: Origins
    let queue: RequestQueue
    /// Runs uploads: a client that sends slowly must not delay downloads.
    let uploads: RequestQueue

    private let groups = Guarded<[TransferGroup: WeakTransfers]>([:])
    private let lastNumber = Atomic<UInt64>(0)

    private struct WeakTransfers {
        weak var shared: SharedTransfers?
    }

    init(_ configuration: MediaCache.Configuration, storage: Storage, origins: Origins) {
        self.storage = storage
        self.origins = origins
        // Without a disk nothing blocks, and a change of thread is saved.
        let executor = storage.hasDirectory ? storage.writers : nil
        queue = RequestQueue(
            limits: RequestQueueStateMachine.Limits(
                maximumDownloads: configuration.maximumDownloads,
                maximumPerHost: configuration.maximumDownloadsPerHost
            ),
            executor: executor
        )
        uploads = RequestQueue(
            limits: RequestQueueStateMachine.Limits(
                maximumDownloads: configuration.maximumUploads,
                maximumPerHost: configuration.maximumUploads
            ),
            executor: executor
        )
    }

    /// Starts no new download until ``resume()``; started ones continue.
    func suspend() { for queue in [queue, uploads] { queue.suspend() } }

    /// Reverts ``suspend()``.
    func resume() { for queue in [queue, uploads] { queue.resume() } }

    /// Ends every transfer for all its subscribers; new ones may join afterwards.
    func cancelAll() { endAll(with: .leftTransfer) }

    /// Ends every transfer, refuses others from now on, and waits until all work has returned, or
    /// until this task is cancelled.
    func shutdown() async {
        for queue in [queue, uploads] { queue.refuse() }
        endAll(with: .queueShutDown)
        for queue in [queue, uploads] { await queue.waitUntilDrained() }
    }

    private func endAll(with error: CacheError) {
        // One that has a transfer is referred to by it.
        let all = groups.withLock { $0.values.compactMap(\.shared) }
        let cancelled = all.map { ($0, $0.cancelAll(with: error)) }
        for (shared, cancelled) in cancelled { shared.didCancelAll(cancelled) }
    }

    // MARK: Shared transfers

    /// The transfers that requests with the same key and selecting fields share.
    func shared(for request: CacheRequest) -> SharedTransfers {
        let group = TransferGroup(key: request.key, selector: request.selector)
        return groups.withLock { groups in
            if let shared = groups[group]?.shared { return shared }
            let shared = SharedTransfers(group: group) { [weak self] in self?.didRelease(group) }
            groups[group] = WeakTransfers(shared: shared)
            return shared
        }
    }

    private func didRelease(_ group: TransferGroup) {
        // Another object may have taken its place meanwhile. Its reference is released outside the
        // lock: if it is the last one by then, its release takes the lock again.
        let other = groups.withLock { groups -> SharedTransfers? in
            guard let entry = groups[group] else { return nil }
            if let shared = entry.shared { return shared }
            groups[group] = nil
            return nil
        }
        withExtendedLifetime(other) {}
    }

    /// A new group, which no other request joins.
    func exclusiveGroup(_ group: TransferGroup) -> TransferGroup {
        TransferGroup(key: group.key, selector: "\(group.selector)#\(nextNumber())")
    }

    // MARK: Transfers

    private func nextNumber() -> UInt64 {
        lastNumber.wrappingAdd(1, ordering: .relaxed).newValue
    }

    /// Joins the transfer that will bring the byte at `offset`, or starts one with `operation`.
    func join(
        _ operation: DownloadOperation,
        at offset: Int64,
        within maximumDistance: Int64? = nil,
        horizon: Int64 = .max,
        stopsAtOthers: Bool = false
    ) -> Subscription {
        let shared = operation.shared
        let queue = operation.plan.upload == nil ? queue : uploads
        // Released with the work, whether it has run or was dropped.
        let mark = operation.request.reports?.beginTransfer()
        let demand = SharedTransfers.Demand(
            group: operation.group,
            offset: offset,
            number: nextNumber(),
            want: ResourceState.Want(priority: operation.request.priority, horizon: horizon),
            maximumDistance: maximumDistance
        )
        let subscription = shared.join(
            demand,
            orStart: SharedTransfers.NewTransfer(
                queue: queue,
                host: operation.request.target.origin.description,
                coverage: operation.plan.range,
                stopsAtOthers: stopsAtOthers,
                observation: operation.plan.observation,
                didMake: { operation.request.report(.queued) },
                work: { [mark] context in
                    defer { withExtendedLifetime(mark) {} }
                    return await operation.ending(at: context.end).run(context)
                }
            )
        )
        if let limit = operation.request.slotLimit {
            subscription.leaveIfWaiting(after: limit, by: storage.time)
        }
        if !subscription.isFirst { didShare(subscription) }
        return subscription
    }

    /// A subscription to the transfer that brings the first missing byte of `wanted`, if there is
    /// one.
    ///
    /// For bodies without a validator: the bytes of a new transfer could not be combined with the
    /// stored ones.
    func transferUnderWay(
        for request: CacheRequest,
        entry: DiskEntry,
        head: StoredResponse,
        wanted: WantedRange
    ) -> Subscription? {
        let shared = shared(for: request)
        let group = shared.joinableGroup(for: entry, head: head)
        var missing = entry.storedRange(at: wanted.start)?.upperBound ?? wanted.start
        var joined = joinUnderWay(shared, for: request, group: group, at: missing)
        // A transfer that has passed the byte since the lookup has stored it.
        while joined == nil, let end = entry.storedRange(at: missing)?.upperBound {
            missing = end
            joined = joinUnderWay(shared, for: request, group: group, at: missing)
        }
        guard let subscription = joined,
            case .storing(let generation) = subscription.context?.outcome,
            generation.entry.generation == entry.generation
        else { return nil }
        didShare(subscription)
        return subscription
    }

    private func didShare(_ subscription: Subscription) {
        storage.recorder.didShareDownload()
        subscription.context?.observation?.didJoin()
    }

    private func joinUnderWay(
        _ shared: SharedTransfers,
        for request: CacheRequest,
        group: TransferGroup,
        at offset: Int64
    ) -> Subscription? {
        shared.joinUnderWay(
            SharedTransfers.Demand(
                group: group,
                offset: offset,
                number: nextNumber(),
                want: ResourceState.Want(priority: request.priority)
            )
        )
    }
}
