public import FoundationEssentials

/// The bytes of a response, as an asynchronous sequence of chunks.
///
/// A chunk is at most 256 KiB, except that a body already in memory comes in one piece. Nothing
/// is read ahead: a consumer that stops reading holds at most one chunk. There is one reading
/// position: a second iterator goes on where the first one stopped. Dropping the body, or
/// cancelling the task that reads it, ends its part in the download; what arrived stays cached.
public struct ResponseBody: AsyncSequence, Sendable {
    /// A chunk of bytes, never empty.
    public typealias Element = Data
    /// What reading can fail with.
    public typealias Failure = CacheError

    let source: any BodySource

    init(_ source: any BodySource) {
        self.source = source
    }

    /// Starts, or continues, to read.
    public func makeAsyncIterator() -> AsyncIterator {
        AsyncIterator(source: source)
    }

    /// Reads a ``ResponseBody``.
    public struct AsyncIterator: AsyncIteratorProtocol {
        let source: any BodySource

        /// The next chunk, or nil at the end of the complete body.
        ///
        /// - Throws: `.representationChanged` when the origin no longer has the bytes that go with
        ///   those delivered; `.originFailed` and `.timedOut` after the retries; `.cancelled`.
        public mutating func next() async throws(CacheError) -> Data? {
            try await source.next()
        }

        /// The same as ``next()``; the actor's isolation plays no role.
        public mutating func next(
            isolation actor: isolated (any Actor)?
        ) async throws(CacheError) -> Data? {
            try await source.next()
        }
    }

    /// Reads the rest of the body into one piece.
    ///
    /// - Parameter limit: the most bytes to hold, by default 1 GiB.
    /// - Returns: the bytes.
    /// - Throws: what reading throws; `.invalidArgument` if there are more bytes than `limit`.
    public func collect(upTo limit: Int = 1 << 30) async throws(CacheError) -> Data {
        var result = Data()
        while let chunk = try await source.next() {
            guard chunk.count <= limit - result.count else {
                throw CacheError(
                    .invalidArgument,
                    "the body has more than \(limit) bytes; read it as a sequence instead"
                )
            }
            if result.isEmpty {
                result = chunk
            } else {
                result.append(chunk)
            }
        }
        return result
    }
}

/// Where a body's bytes come from; for one consumer at a time.
protocol BodySource: AnyObject, Sendable {
    /// The next chunk, never empty, or nil at the end.
    func next() async throws(CacheError) -> Data?
    /// The delivered bytes by origin.
    var counts: ByteCounts { get }
}

/// A body, or part of one, that is in memory already.
final class MemoryBody: BodySource {
    private let rest: Guarded<Data?>
    let counts = ByteCounts()

    init(_ bytes: Data) {
        rest = Guarded(bytes.isEmpty ? nil : bytes)
    }

    func next() async throws(CacheError) -> Data? {
        guard let bytes = rest.withLock({ $0.take() }) else { return nil }
        counts.add(fromCache: Int64(bytes.count))
        return bytes
    }
}

/// A body that is not stored, read from the flight that fetches it.
final class PassThroughBody: BodySource {
    let counts = ByteCounts()
    private let channel: PassThroughChannel
    private let subscription: Subscription
    /// The offset of the channel's next byte.
    private let position: Guarded<Int64>
    private let range: Range<Int64>

    /// Reads the part of a channel, claimed for this reader, that lies in `range`.
    init(_ channel: PassThroughChannel, range: Range<Int64>, subscription: Subscription) {
        self.channel = channel
        self.subscription = subscription
        self.range = range
        position = Guarded(channel.start)
    }

    deinit {
        channel.abandon()
        subscription.cancel()
    }

    func next() async throws(CacheError) -> Data? {
        while true {
            guard position.withLock({ $0 }) < range.upperBound,
                let chunk = try await channel.next()
            else { return nil }
            let bytes = trim(chunk)
            guard !bytes.isEmpty else { continue }
            counts.add(fromOrigin: Int64(bytes.count))
            return bytes
        }
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
