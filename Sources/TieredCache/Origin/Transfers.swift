import HTTPCaching
import Synchronization

/// The downloads of one cache: finds or makes the flight that brings a byte.
final class Transfers: Sendable {
    let storage: Storage
    let origins: Origins
    let queue: RequestQueue
    /// Runs what brings content to an origin: a client that sends slowly keeps no download waiting.
    let uploads: RequestQueue

    private let fills = Guarded<[FlightGroup: WeakFill]>([:])
    private let nextNumber = Atomic<UInt64>(0)

    private struct WeakFill {
        weak var fill: Fill?
    }

    init(_ configuration: Configuration, storage: Storage, origins: Origins) {
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
            firstFlight: 1 << 63,
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
    func fill(for request: CacheRequest) -> Fill {
        let group = FlightGroup(key: request.key, selector: request.selector)
        return fills.withLock { fills in
            if let fill = fills[group]?.fill { return fill }
            let fill = Fill(group: group) { [weak self] in self?.didRelease(group) }
            fills[group] = WeakFill(fill: fill)
            return fill
        }
    }

    private func didRelease(_ group: FlightGroup) {
        // Another one may have taken its place meanwhile. It is let go of outside the lock: if this
        // is the last reference by then, its release takes the lock again.
        let other = fills.withLock { fills -> Fill? in
            guard let entry = fills[group] else { return nil }
            if let fill = entry.fill { return fill }
            fills[group] = nil
            return nil
        }
        withExtendedLifetime(other) {}
    }

    /// A group of its own, which no other request joins.
    func soleGroup(_ group: FlightGroup) -> FlightGroup {
        let number = nextNumber.wrappingAdd(1, ordering: .relaxed).newValue
        return FlightGroup(key: group.key, selector: "\(group.selector)#\(number)")
    }

    // MARK: Flights

    /// Joins the flight that will bring the byte at `offset`, or makes one that does `operation`.
    func join(
        _ operation: DownloadOperation,
        at offset: Int64,
        within maximumDistance: Int64? = nil
    ) -> Subscription {
        let fill = operation.fill
        let queue = operation.plan.upload == nil ? queue : uploads
        let subscription = queue.join(
            operation.group,
            wanting: offset,
            coverage: operation.plan.range,
            host: operation.request.target.origin.description,
            priority: operation.request.priority,
            maximumDistance: maximumDistance,
            didMake: { operation.request.onNotice?(.queued) },
            didEnd: { fill.signal.bump() },
            work: { context in await operation.run(context) }
        )
        if !subscription.isFirst { storage.recorder.didShareDownload() }
        return subscription
    }

    /// A share in the flight that brings the first byte of `wanted` that is missing, if there is one.
    ///
    /// For bodies without validator: a flight of their own could not be joined to what is held.
    func flightUnderWay(
        for request: CacheRequest,
        _ entry: DiskEntry,
        _ wanted: WantedRange
    ) -> Subscription? {
        let fill = fill(for: request)
        var missing = entry.held(at: wanted.start)?.upperBound ?? wanted.start
        var joined = joinUnderWay(fill, request, entry, at: missing)
        // A flight that has passed the byte since it was looked for has stored it.
        while joined == nil, let end = entry.held(at: missing)?.upperBound {
            missing = end
            joined = joinUnderWay(fill, request, entry, at: missing)
        }
        guard let subscription = joined,
            case .storing(let generation) = subscription.report?.answer,
            generation.entry.generation == entry.generation
        else { return nil }
        storage.recorder.didShareDownload()
        return subscription
    }

    private func joinUnderWay(
        _ fill: Fill,
        _ request: CacheRequest,
        _ entry: DiskEntry,
        at offset: Int64
    ) -> Subscription? {
        queue.joinUnderWay(
            fill.joinableGroup(for: entry),
            wanting: offset,
            priority: request.priority,
            didEnd: { fill.signal.bump() }
        )
    }
}
