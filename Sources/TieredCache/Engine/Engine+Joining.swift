import HTTPCaching

extension Engine {
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
            didEnd: { fill.signal.bump() },
            work: { context in await operation.run(context) }
        )
        if subscription.isFirst {
            operation.request.onNotice?(.queued)
        } else {
            recorder.didShareDownload()
        }
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
        guard let subscription = joined, let flight = subscription.flight,
            case .storing(let generation) = fill.answer(of: flight),
            generation.entry.generation == entry.generation
        else { return nil }
        recorder.didShareDownload()
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
