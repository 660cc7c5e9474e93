import FoundationEssentials

/// A body that is not stored, read from its transfer once, in order.
final class PassThroughReader: BodySource {
    private struct State {
        /// The offset of the next byte.
        var position: Int64
        /// The bytes of the last chunk that have not been read.
        var rest = Data()
        /// Whether a task reads the rest of the body, so that it is stored.
        var isHandedOver = false
        var counts = ByteCounts()

        mutating func drop(_ count: Int) {
            rest = rest.dropFirst(count)
            position += Int64(count)
        }
    }

    private let channel: PassThroughChannel
    private let subscription: Subscription
    private let range: Range<Int64>
    private let state: Guarded<State>

    /// The maximum number of bytes read after the last wanted one, to complete a stored block.
    ///
    /// About what has arrived anyway: more would be traffic that was not asked for.
    private static let maximumRest: Int64 = 64 << 10

    /// Reads the bytes of a channel, claimed for this reader, that lie in `range`.
    init(_ channel: PassThroughChannel, range: Range<Int64>, subscription: Subscription) {
        self.channel = channel
        self.subscription = subscription
        self.range = range
        state = Guarded(State(position: channel.start))
    }

    deinit {
        if !state.withLock({ $0.isHandedOver }) { leave() }
    }

    var counts: ByteCounts { state.withLock { $0.counts } }

    /// The offset of the next byte.
    var position: Int64 { state.withLock { $0.position } }

    /// Bumped when more bytes are available.
    var signal: ProgressSignal { channel.signal }

    /// The end of the body; nil until it is known, and if the transfer did not receive it.
    var bodyEnd: Int64? { channel.bodyEnd }

    func open() -> ReaderBytes { .sequential(self) }

    private func leave() {
        channel.abandon()
        subscription.cancel()
    }

    // MARK: Sequential reads

    func next(atMost count: Int) async throws(CacheError) -> Data? {
        while position < range.upperBound {
            guard let chunk = try await channel.next() else {
                try checkEnd()
                return nil
            }
            let bytes = trim(chunk)
            guard !bytes.isEmpty else { continue }
            state.withLock { $0.counts.add(fromOrigin: Int64(bytes.count)) }
            return bytes
        }
        try await finish()
        return nil
    }

    /// Waits for the verification of a complete body, and leaves the transfer unless the rest
    /// completes a stored block.
    func finish() async throws(CacheError) {
        if channel.awaitsDecision, position == channel.completeLength {
            _ = try await channel.next()
        }
        // Nothing else needs the rest of the body.
        if !storesRest() { leave() }
    }

    /// Whether all of the body was read, and the end may only be told after its comparison.
    var isAtJudgedEnd: Bool { channel.awaitsDecision && position == channel.completeLength }

    /// Waits for the comparison of a body that was read to its end; does nothing before that.
    ///
    /// - Throws: what the comparison has found, at each call; what the budget says.
    func awaitDecision(at offset: Int64, budget: ReadBudget) async throws(CacheError) {
        while isAtJudgedEnd {
            let seen = signal.version
            if try channel.poll() != nil { return }
            try budget.checkStop()
            try budget.check(offset)
            await budget.wait(on: signal, after: seen)
        }
    }

    /// Starts a task that reads the rest, if that completes a block of a stored part.
    private func storesRest() -> Bool {
        let rest = channel.end - position
        guard channel.storesPart, rest > 0, rest <= Self.maximumRest else { return false }
        let isFirst = state.withLock { state in
            defer { state.isHandedOver = true }
            return !state.isHandedOver
        }
        guard isFirst else { return true }
        Task { [channel, subscription] in
            do throws(CacheError) {
                while try await channel.next() != nil {}
            } catch {
                // The bytes received so far stay stored; the reader has all that it wanted.
            }
            channel.abandon()
            subscription.cancel()
        }
        return true
    }

    /// Throws for an early end, which must not look like the end of the body (invariant 3).
    private func checkEnd() throws(CacheError) {
        let end = position
        guard end > range.lowerBound || range.lowerBound == 0 else {
            throw CacheError(
                .rangeNotSatisfiable,
                "byte \(range.lowerBound) does not exist: the whole has \(end) bytes"
            )
        }
        guard let length = channel.completeLength else { return }
        let wanted = min(range.upperBound, length, channel.end)
        guard end < wanted else { return }
        throw CacheError(.originFailed, "the body ended at byte \(end) of \(wanted)")
    }

    /// The bytes of the next chunk that lie in the range.
    private func trim(_ chunk: BodyChunk) -> Data {
        let start = state.withLock { state in
            defer { state.position += Int64(chunk.count) }
            return state.position
        }
        let wanted = range.clamped(to: start..<start + Int64(chunk.count))
        guard !wanted.isEmpty else { return Data() }
        return chunk.withUnsafeBytes { bytes in
            let part = Int(wanted.lowerBound - start)..<Int(wanted.upperBound - start)
            return Data(UnsafeRawBufferPointer(rebasing: bytes[part]))
        }
    }

    // MARK: Reads at an offset

    /// The result of taking bytes at an offset.
    enum Taken {
        case bytes(Int)
        /// They have not arrived: the signal, which had this version, is bumped when they do.
        case awaited(seen: UInt64)
        case end
        /// They have been passed, or are so far ahead that a new request costs less than the bytes
        /// in between.
        case outOfReach
    }

    /// Takes bytes if they are available, and drops those before them; never waits.
    ///
    /// Bytes more than `reach` bytes ahead are out of reach.
    func take(_ read: Read, within reach: Int64) throws(CacheError) -> Taken {
        while true {
            if let count = takeRest(read) { return .bytes(count) }
            let position = position
            guard position <= read.offset, read.offset - position <= reach
            else { return .outOfReach }
            guard position < range.upperBound else { return .end }
            let seen = signal.version
            guard let polled = try channel.poll() else { return .awaited(seen: seen) }
            guard let chunk = polled else {
                try checkEnd()
                return .end
            }
            let bytes = chunk.withUnsafeBytes { Data($0) }
            state.withLock { $0.rest = bytes }
        }
    }

    private func takeRest(_ read: Read) -> Int? {
        state.withLock { state in
            let skipped = min(Int64(state.rest.count), max(0, read.offset - state.position))
            state.drop(Int(skipped))
            guard state.position == read.offset, !state.rest.isEmpty else { return nil }
            let count = read.destination.copy(state.rest)
            state.drop(count)
            return count
        }
    }
}
