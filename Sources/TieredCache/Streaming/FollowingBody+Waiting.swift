import HTTPCaching

// What a reader does at a byte that is not held.
extension FollowingBody {
    /// Waits until something has changed about the missing byte at `position`.
    ///
    /// - Parameters:
    ///   - position: the byte.
    ///   - limit: the end of what is wanted.
    ///   - filler: fetches it.
    ///   - seen: the signal's version before the byte was looked for.
    ///   - outcome: how the flight had ended by then, so that what it brought was seen.
    /// - Throws: why the byte will not come.
    func wait(
        at position: Int64,
        limit: Int64,
        _ filler: Filler,
        seen: UInt64,
        _ outcome: Result<Void, CacheError>?
    ) async throws(CacheError) {
        guard !Task.isCancelled else { throw CacheError(.cancelled, "the read was cancelled") }
        guard let flight = state.withLock({ $0.flight }) else {
            return try join(filler, at: position, limit: limit)
        }
        switch filler.standing(of: flight, entry, at: position) {
        case .underWay:
            break
        case .claimed(let channel, let trouble):
            return pass(channel, position..<limit, flight, trouble)
        case .forOthers:
            // What the flight stored before it went past the disk came after the look at it.
            guard entry.held(at: position) == nil else { return }
            return try join(filler, at: position, limit: limit, isAlone: true)
        case .otherRepresentation:
            filler.handOver(flight)
            throw filler.changed()
        case .unsuccessful(let status):
            throw CacheError.status(status, for: filler.request.target)
        }
        if let outcome {
            ride(nil)
            return try outcome.get()
        }
        await filler.fill.signal.wait(after: seen)
    }

    private func pass(
        _ channel: PassThroughChannel,
        _ range: Range<Int64>,
        _ flight: Subscription,
        _ trouble: CacheError?
    ) {
        let body = PassThroughBody(channel, range: range, subscription: flight)
        state.withLock { state in
            (state.channel, state.flight) = (body, nil)
            state.storageTrouble = trouble
        }
    }

    private func join(
        _ filler: Filler,
        at position: Int64,
        limit: Int64,
        isAlone: Bool = false
    ) throws(CacheError) {
        guard !filler.isOutdated(entry) else { throw filler.changed() }
        let fruitless = state.withLock { state in
            state.fruitless += 1
            return state.fruitless
        }
        guard fruitless <= 3 else {
            throw CacheError(
                .originFailed,
                "\(filler.request.target.redacted) did not deliver byte \(position)"
            )
        }
        // Several readers without a disk cannot share one channel: the later ones fetch alone.
        let isAlone = isAlone || fruitless > 1
        ride(filler.join(entry, at: position, limit: limit, isAlone: isAlone))
    }
}
