import HTTPCaching
import Synchronization

/// The downloads of one cache: finds or makes the transfer that brings a byte.
final class Transfers: Sendable {
    let storage: Storage
    let origins: Origins
    let queue: RequestQueue
    /// Runs what brings content to an origin: a client that sends slowly keeps no download waiting.
    let uploads: RequestQueue

    private let groups = Guarded<[TransferGroup: WeakTransfers]>([:])
    private let nextNumber = Atomic<UInt64>(0)

    private struct WeakTransfers {
        weak var shared: SharedTransfers?
    }

    init(_ configuration: MediaCache.Configuration, storage: Storage, origins: Origins) {
        self.storage = storage
        self.origins = origins
        queue = RequestQueue(
            limits: RequestQueueStateMachine.Limits(
                maximumDownloads: configuration.maximumDownloads,
                maximumPerHost: configuration.maximumDownloadsPerHost
            ),
            executor: storage.writers
        )
        uploads = RequestQueue(
            limits: RequestQueueStateMachine.Limits(
                maximumDownloads: configuration.maximumUploads,
                maximumPerHost: configuration.maximumUploads
            ),
            firstTransfer: 1 << 63,
            executor: storage.writers
        )
    }

    /// Does something to all that runs.
    func forEachQueue(_ body: (RequestQueue) -> Void) {
        body(queue)
        body(uploads)
    }

    // MARK: Fills

    /// The fill of a request, shared with all requests for the same key and selecting fields.
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
        // Another one may have taken its place meanwhile. It is let go of outside the lock: if this
        // is the last reference by then, its release takes the lock again.
        let other = groups.withLock { groups -> SharedTransfers? in
            guard let entry = groups[group] else { return nil }
            if let shared = entry.shared { return shared }
            groups[group] = nil
            return nil
        }
        withExtendedLifetime(other) {}
    }

    /// A group of its own, which no other request joins.
    func soleGroup(_ group: TransferGroup) -> TransferGroup {
        let number = nextNumber.wrappingAdd(1, ordering: .relaxed).newValue
        return TransferGroup(key: group.key, selector: "\(group.selector)#\(number)")
    }

    // MARK: Transfers

    /// Joins the transfer that will bring the byte at `offset`, or makes one that does `operation`.
    func join(
        _ operation: DownloadOperation,
        at offset: Int64,
        within maximumDistance: Int64? = nil
    ) -> Subscription {
        let shared = operation.shared
        let queue = operation.plan.upload == nil ? queue : uploads
        let subscription = queue.join(
            operation.group,
            wanting: offset,
            coverage: operation.plan.range,
            host: operation.request.target.origin.description,
            priority: operation.request.priority,
            maximumDistance: maximumDistance,
            didMake: { operation.request.onNotice?(.queued) },
            didEnd: { shared.signal.bump() },
            work: { context in await operation.run(context) }
        )
        if !subscription.isFirst { storage.recorder.didShareDownload() }
        return subscription
    }

    /// A share in the transfer that brings the first byte of `wanted` that is missing, if there is
    /// one.
    ///
    /// For bodies without validator: a transfer of their own could not be joined to what is stored.
    func transferUnderWay(
        for request: CacheRequest,
        _ entry: DiskEntry,
        _ wanted: WantedRange
    ) -> Subscription? {
        let shared = shared(for: request)
        var missing = entry.storedRange(at: wanted.start)?.upperBound ?? wanted.start
        var joined = joinUnderWay(shared, request, entry, at: missing)
        // A transfer that has passed the byte since it was looked for has stored it.
        while joined == nil, let end = entry.storedRange(at: missing)?.upperBound {
            missing = end
            joined = joinUnderWay(shared, request, entry, at: missing)
        }
        guard let subscription = joined,
            case .storing(let generation) = subscription.report?.answer,
            generation.entry.generation == entry.generation
        else { return nil }
        storage.recorder.didShareDownload()
        return subscription
    }

    private func joinUnderWay(
        _ shared: SharedTransfers,
        _ request: CacheRequest,
        _ entry: DiskEntry,
        at offset: Int64
    ) -> Subscription? {
        queue.joinUnderWay(
            shared.joinableGroup(for: entry),
            wanting: offset,
            priority: request.priority,
            didEnd: { shared.signal.bump() }
        )
    }
}
