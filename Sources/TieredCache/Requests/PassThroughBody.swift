import FoundationEssentials

/// A body that is not stored, read from the flight that fetches it.
final class PassThroughBody: BodySource {
    let counts = ByteCounts()
    private let channel: PassThroughChannel
    private let subscription: Subscription
    /// The offset of the channel's next byte.
    private let position: Guarded<Int64>
    private let range: Range<Int64>
    /// Whether somebody else reads the rest, for the cache.
    private let isHandedOver = Guarded(false)

    /// What of a block that is kept may still come after the last byte that the reader wants.
    private static let worthKeeping: Int64 = 64 << 10

    /// Reads the part of a channel, claimed for this reader, that lies in `range`.
    init(_ channel: PassThroughChannel, range: Range<Int64>, subscription: Subscription) {
        self.channel = channel
        self.subscription = subscription
        self.range = range
        position = Guarded(channel.start)
    }

    deinit {
        guard !isHandedOver.withLock({ $0 }) else { return }
        channel.abandon()
        subscription.cancel()
    }

    /// Where the body turned out to end; nil before that, or if it was not seen.
    var bodyEnd: Int64? { channel.bodyEnd }

    func next(atMost count: Int) async throws(CacheError) -> Data? {
        while position.withLock({ $0 }) < range.upperBound {
            guard let chunk = try await channel.next() else {
                try checkEnd()
                return nil
            }
            let bytes = trim(chunk)
            guard !bytes.isEmpty else { continue }
            counts.add(fromOrigin: Int64(bytes.count))
            return bytes
        }
        if channel.awaitsVerdict, position.withLock({ $0 }) == channel.completeLength {
            _ = try await channel.next()
        }
        guard !keepsRest() else { return nil }
        // Nobody wants what the origin still has.
        channel.abandon()
        subscription.cancel()
        return nil
    }

    /// Reads on without the reader where that completes a block of a part that is kept.
    private func keepsRest() -> Bool {
        let rest = channel.end - position.withLock { $0 }
        guard channel.isKept, rest > 0, rest <= Self.worthKeeping else { return false }
        guard
            !isHandedOver.withLock({ isHandedOver in
                defer { isHandedOver = true }
                return isHandedOver
            })
        else { return true }
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
        let end = position.withLock { $0 }
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
        let start = position.withLock { position in
            defer { position += Int64(chunk.count) }
            return position
        }
        let wanted = range.clamped(to: start..<start + Int64(chunk.count))
        guard !wanted.isEmpty else { return Data() }
        return chunk.withUnsafeBytes { bytes in
            Data(bytes[Int(wanted.lowerBound - start)..<Int(wanted.upperBound - start)])
        }
    }
}
