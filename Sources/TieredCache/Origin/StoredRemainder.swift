import HTTPCaching
import HTTPTypes

/// What a guest's owner has stored of a body, as the 206 of an origin: where an owner ends in the
/// middle of it, the guest need not ask the origin for that.
///
/// Only for a request that goes on with what came, by its `If-Range`, so that nothing but the same
/// representation answers (invariant 3).
enum StoredRemainder {
    /// The response from the directory; nil if it has nothing to begin with.
    ///
    /// An owner that has taken back what it had passed on was contradicted by the origin: to go on
    /// with that is refused with 412 (row 17).
    static func response(
        to request: TransportRequest,
        from storage: Storage
    ) async -> TransportResponse? {
        guard let wanted = Wanted(request) else { return nil }
        let entry = await entry(for: wanted.key, from: storage)
        if let generation = wanted.generation, entry?.generation != generation {
            return TransportResponse(
                head: HTTPResponse(status: .preconditionFailed),
                body: EmptyBody()
            )
        }
        guard let entry, let head = StoredResponse(encoded: entry.metadata), head.status == 200,
            head.validator?.ifRangeValue == wanted.validator, head.finalTarget == wanted.target,
            let length = entry.completeLength,
            let range = wanted.range.resolved(completeLength: length)
        else { return nil }
        let body = StoredRemainderBody(
            entry,
            from: range.lowerBound,
            until: range.upperBound,
            storage
        )
        // A damaged block is found out here: then the origin is asked.
        guard let stored = await body.begin() else { return nil }
        var fields = StoredFields.endToEnd(head.fields)
        fields[.contentLength] = String(stored.count)
        fields[.contentRange] = ContentRange.bytes(stored, completeLength: length).fieldValue
        request.onStart? { [weak body] in body?.cancel() }
        return TransportResponse(
            head: HTTPResponse(status: .partialContent, headerFields: fields),
            body: body
        )
    }

    private static func entry(for key: CacheKey, from storage: Storage) async -> DiskEntry? {
        do throws(CacheError) {
            return try await storage.entry(for: key, isUse: true)
        } catch {
            return nil  // The cache is closing.
        }
    }

    /// The bytes that a request goes on with.
    private struct Wanted {
        let target: TargetURI
        let key: CacheKey
        let range: ByteRangeSpec
        let validator: String
        /// The generation that the owner has stored what it passed on in; nil if it may be another
        /// one by now, or none.
        let generation: UInt64?

        init?(_ request: TransportRequest) {
            guard let shared = request.shared, let scheme = request.head.scheme,
                let authority = request.head.authority, let path = request.head.path,
                let validator = request.head.headerFields[.ifRange],
                let range = request.head.headerFields[.range].flatMap({ RangeRequest($0) }),
                range.specs.count == 1
            else { return nil }
            do throws(TargetURIError) {
                target = try TargetURI("\(scheme)://\(authority)\(path)")
            } catch {
                return nil
            }
            key = CacheRequest.key(shared.target, explicit: shared.key)
            generation =
                if case .brokeOff(let generation) = shared.failure { generation } else { nil }
            self.range = range.specs[0]
            self.validator = validator
        }
    }
}

private final class EmptyBody: TransportBody {
    func next() async throws(TransportError) -> BodyChunk? { nil }
    func cancel() {}
}

/// The bytes of an entry that are stored in a row, read as they are asked for.
private final class StoredRemainderBody: TransportBody {
    private struct State {
        var position: Int64
        var end: Int64
        /// The first bytes, read before there was a response.
        var first: BodyChunk?
        var isCancelled = false
    }

    private static let chunkSize = 64 << 10

    private let entry: DiskEntry
    private let io: IOExecutor
    private let state: Guarded<State>

    init(_ entry: DiskEntry, from start: Int64, until end: Int64, _ storage: Storage) {
        self.entry = entry
        io = storage.io
        state = Guarded(State(position: start, end: end))
    }

    /// Reads the first bytes.
    ///
    /// - Returns: the range that can be read; nil where that is nothing.
    func begin() async -> Range<Int64>? {
        let (start, end) = state.withLock { ($0.position, $0.end) }
        guard let run = entry.storedRange(at: start),
            let chunk = await read(at: start, atMost: min(end, run.upperBound) - start)
        else { return nil }
        return state.withLock { state in
            state.first = chunk
            state.end = min(end, run.upperBound)
            return start..<state.end
        }
    }

    func next() async throws(TransportError) -> BodyChunk? {
        let (first, position, end, isCancelled) = state.withLock { state in
            (state.first.take(), state.position, state.end, state.isCancelled)
        }
        guard !isCancelled else { throw TransportError(.cancelled, "the read was cancelled") }
        guard position < end else { return nil }
        var chunk = first
        if chunk == nil { chunk = await read(at: position, atMost: end - position) }
        guard let chunk else {
            throw TransportError(.closedEarly, "stored bytes are damaged, or gone")
        }
        state.withLock { $0.position += Int64(chunk.count) }
        return chunk
    }

    private func read(at offset: Int64, atMost count: Int64) async -> BodyChunk? {
        let size = Int(min(count, Int64(Self.chunkSize)))
        return await io.run { [entry] in
            var bytes = [UInt8](repeating: 0, count: size)
            let count = bytes.withUnsafeMutableBytes { entry.read(at: offset, into: $0) }
            return count > 0 ? BodyChunk(Array(bytes.prefix(count))) : nil
        }
    }

    func cancel() { state.withLock { $0.isCancelled = true } }
}
