import FoundationEssentials

/// A body that is not stored, read from the transfer that fetches it: once, and in order.
final class PassThroughReader: BodySource {
    private struct State {
        /// The offset of the next byte.
        var position: Int64
        /// What of the last chunk has not been taken.
        var rest = Data()
        /// Whether the rest is read without the reader, for the cache.
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

    /// What of a block that is kept may still come after the last byte that the reader wants.
    private static let worthKeeping: Int64 = 64 << 10

    /// Reads the part of a channel, claimed for this reader, that lies in `range`.
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

    /// Bumped when there is more to take.
    var signal: ProgressSignal { channel.signal }

    /// Where the body turned out to end; nil before that, or if it was not seen.
    var bodyEnd: Int64? { channel.bodyEnd }

    func open() -> ReaderBytes { .inOrder(self) }

    private func leave() {
        channel.abandon()
        subscription.cancel()
    }

    // MARK: Reading in order

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

    /// Waits for the decision on a body that has come to its end, and leaves the rest to the cache,
    /// which is not wanted unless it completes a block.
    func finish() async throws(CacheError) {
        if channel.awaitsDecision, position == channel.completeLength {
            _ = try await channel.next()
        }
        // What the origin still has is of no use otherwise.
        if !keepsRest() { leave() }
    }

    /// Reads on without the reader where that completes a block of a part that is kept.
    private func keepsRest() -> Bool {
        let rest = channel.end - position
        guard channel.isKept, rest > 0, rest <= Self.worthKeeping else { return false }
        let isFirst = state.withLock { state in
            defer { state.isHandedOver = true }
            return !state.isHandedOver
        }
        guard isFirst else { return true }
        Task { [channel, subscription] in
            do throws(CacheError) {
                while try await channel.next() != nil {}
            } catch {
                // What has come is kept; the reader has all that it wanted.
            }
            channel.abandon()
            subscription.cancel()
        }
        return true
    }

    /// An end before its time must not look like the end (invariant 3).
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
            Data(bytes[Int(wanted.lowerBound - start)..<Int(wanted.upperBound - start)])
        }
    }

    // MARK: Reading from an offset

    /// What a look at the bytes at an offset has found.
    enum Taken {
        case bytes(Int)
        /// They are on their way: the signal, which had this version, is bumped when they are
        /// there.
        case awaited(seen: UInt64)
        case end
        /// They have been passed, or are so far ahead that a request costs less than the bytes
        /// between.
        case outOfReach
    }

    /// Takes bytes if they are there, without those before them; never waits.
    ///
    /// What begins more than `reach` bytes ahead is out of reach.
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
