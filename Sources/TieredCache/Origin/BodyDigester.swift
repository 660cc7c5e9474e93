/// Computes digests of one body, each once.
///
/// In slices: a film takes many seconds, and others want the threads meanwhile. Of all that compute
/// at once two have a slice at a time, in turn.
struct BodyDigester {
    enum Comparison: Sendable {
        case same
        case other(ContentDigest, found: ContentDigest)
        /// A block is damaged or gone.
        case unreadable
        /// The cache is being closed.
        case stopped
    }

    /// The bytes that are read before another task may have the thread.
    static let slice: Int64 = 8 << 20

    let entry: DiskEntry
    let length: Int64
    let storage: Storage
    private(set) var found: [ContentDigest]
    /// The algorithms of which this system could compute no digest.
    private(set) var lacking: Set<ContentDigest.Algorithm> = []

    init(entry: DiskEntry, length: Int64, storage: Storage, found: [ContentDigest]) {
        self.entry = entry
        self.length = length
        self.storage = storage
        self.found = found
    }

    /// Compares with each digest; those of an algorithm that this system lacks are left out.
    mutating func compare(with digests: [ContentDigest]) async -> Comparison {
        for digest in digests {
            switch await computed(digest.algorithm) {
            case .digest(digest): continue
            case .digest(let other): return .other(digest, found: other)
            case .unknown: lacking.insert(digest.algorithm)
            case .unreadable: return .unreadable
            case .stopped: return .stopped
            }
        }
        return .same
    }

    private mutating func computed(
        _ algorithm: ContentDigest.Algorithm
    ) async -> BodyDigest.Result {
        if let known = found.first(where: { $0.algorithm == algorithm }) { return .digest(known) }
        let computation = await compute(algorithm)
        if case .digest(let digest) = computation { found.append(digest) }
        return computation
    }

    private func compute(_ algorithm: ContentDigest.Algorithm) async -> BodyDigest.Result {
        guard let digest = BodyDigest(algorithm) else { return .unknown }
        var position: Int64 = 0
        while position < length {
            guard !storage.disk.isClosed else { return .stopped }
            let range = position..<min(position + Self.slice, length)
            await storage.digesting.enter()
            let failure = await storage.writers.run { digest.take(entry, range) }
            storage.digesting.leave()
            if let failure { return failure }
            position = range.upperBound
            if position < length { await Task.yield() }
        }
        return digest.finish()
    }
}

/// A digest of a body that is read in slices, by one task.
private final class BodyDigest: Sendable {
    enum Result: Sendable {
        case digest(ContentDigest)
        /// This system lacks the algorithm.
        case unknown
        case unreadable
        case stopped
    }

    private struct State: ~Copyable {
        var context: DigestContext
    }

    private let state: Guarded<State>

    /// - Returns: nil if this system lacks the algorithm.
    init?(_ algorithm: ContentDigest.Algorithm) {
        guard let context = DigestContext(algorithm) else { return nil }
        state = Guarded(State(context: context))
    }

    /// Adds bytes of an entry.
    ///
    /// - Returns: nil if it has added them all.
    func take(_ entry: DiskEntry, _ range: Range<Int64>) -> Result? {
        var position = range.lowerBound
        while position < range.upperBound {
            let end = min(position + (256 << 10), range.upperBound)
            let bytes = entry.readAll(position..<end)
            guard !bytes.isEmpty else { return .unreadable }
            let isTaken = state.withLock { state in
                bytes.withUnsafeBytes { state.context.update($0) }
            }
            guard isTaken else { return .unknown }
            position += Int64(bytes.count)
        }
        return nil
    }

    func finish() -> Result {
        state.withLock { $0.context.finish() }.map { .digest($0) } ?? .unknown
    }
}
