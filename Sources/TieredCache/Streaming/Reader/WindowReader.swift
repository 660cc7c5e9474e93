import FoundationEssentials

/// Reads a body that is not stored from its window, once, in order.
final class WindowReader: BodySource {
    let window: WindowBody
    private let subscription: Subscription
    private let range: Range<Int64>
    /// Compares the bytes with what the body has to be; nil if nothing is to be decided, or its
    /// reader does so.
    let digests: ReaderDigests?

    /// Reads the bytes of a window, claimed for this reader, that lie in `range`.
    init(
        _ window: WindowBody,
        range: Range<Int64>,
        subscription: Subscription,
        digests: ReaderDigests? = nil
    ) {
        self.digests = digests
        self.window = window
        self.subscription = subscription
        self.range = range
    }

    deinit {
        leave()
    }

    var counts: ByteCounts {
        var counts = ByteCounts()
        let end = min(window.position, range.upperBound)
        counts.add(fromOrigin: max(0, end - range.lowerBound))
        return counts
    }

    func open() -> ReaderBytes { .sequential(self) }

    private func leave() {
        window.leave()
        subscription.cancel()
    }

    // MARK: Sequential reads

    func next(atMost count: Int) async throws(CacheError) -> Data? {
        while true {
            let position = max(window.position, range.lowerBound)
            guard position < range.upperBound else {
                // Nothing else needs the rest of the body.
                leave()
                try compare()
                return nil
            }
            switch try take(at: position, atMost: Int(clamping: range.upperBound - position)) {
            case .bytes(let bytes): return bytes
            case .awaited(let seen):
                guard !Task.isCancelled else { throw .readCancelled }
                await window.signal.wait(after: seen)
            case .end: return nil
            // Another task has taken these bytes meanwhile, which is no end.
            case .outOfReach: continue
            }
        }
    }

    /// Compares a body that was read to its end; does nothing before that.
    ///
    /// - Throws: the error of a wrong body, at each call.
    func compare() throws(CacheError) {
        guard let digests, let length = window.completeLength ?? window.bodyEnd else { return }
        try digests.check(atEnd: length)
    }

    // MARK: Reads at an offset

    /// Takes bytes if they are available, and drops those before them; never waits.
    ///
    /// Bytes more than `reach` bytes ahead are out of reach: a new request costs less than the
    /// bytes in between.
    func take(
        at offset: Int64,
        atMost count: Int,
        within reach: Int64 = .max
    ) throws(CacheError) -> WindowBody.Taken {
        guard offset < range.upperBound else { return .end }
        let taken = try window.take(at: offset, atMost: count, within: reach)
        switch taken {
        case .bytes(let bytes): bytes.withUnsafeBytes { digests?.take($0, at: offset) }
        case .end:
            try checkEnd()
            try compare()
        case .awaited, .outOfReach: break
        }
        return taken
    }

    /// Throws for an early end, which must not look like the end of the body (invariant 3).
    private func checkEnd() throws(CacheError) {
        let end = window.position
        guard end > range.lowerBound || range.lowerBound == 0 else {
            throw CacheError(
                .rangeNotSatisfiable,
                "byte \(range.lowerBound) does not exist: the whole has \(end) bytes"
            )
        }
        guard let length = window.completeLength else { return }
        let wanted = min(range.upperBound, length, window.end)
        guard end < wanted else { return }
        throw CacheError(.originFailed, "the body ended at byte \(end) of \(wanted)")
    }
}
