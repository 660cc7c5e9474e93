import HTTPCaching

/// Reads a representation that is not stored: in order, with a new request at each jump.
final class ReopeningReader: BodyReader {
    /// The bytes of one response.
    private struct Piece: Sendable {
        let bytes: ReaderBytes
        let start: Int64
    }

    private struct State: Sendable {
        var piece: Piece
        var counts = ByteCounts()
    }

    let length: Int64?
    let storageError: CacheError?
    private let time: any TimeSource
    private let fetch: Fetch
    private let request: CacheRequest
    private let head: StoredResponse
    private let state: Guarded<State>

    /// Sends a request.
    typealias Fetch = @Sendable (CacheRequest) async throws(CacheError) -> CacheResponse

    init(
        _ response: CacheResponse,
        for request: CacheRequest,
        time: any TimeSource,
        fetch: @escaping Fetch
    ) {
        self.time = time
        self.fetch = fetch
        self.request = request
        head = response.head
        length = response.completeLength
        storageError = response.storageError
        let start = response.range.lowerBound
        state = Guarded(State(piece: Piece(bytes: response.body.source.open(), start: start)))
    }

    var counts: ByteCounts { state.withLock { $0.counts } }

    /// Nothing of it is stored.
    var storedRanges: [Range<Int64>] { [] }

    /// An origin that sends a length and a validator can be asked for any part again.
    var isSeekable: Bool { length != nil && head.validator != nil }

    func readWithoutWaiting(_ read: Read) -> Int? {
        guard let length, read.offset >= length else { return nil }
        // Only the end says that the body is right.
        switch state.withLock({ $0.piece.bytes }) {
        case .seekable(let source): return source.readWithoutWaiting(read)
        case .sequential(let reader): return reader.digests == nil ? 0 : nil
        }
    }

    func read(_ read: Read, until deadline: MonotonicTime?) async throws(CacheError) -> Int {
        var budget = ReadBudget(deadline: deadline, time: time, control: read.control)
        if let length, read.offset >= length { return try await end(read, budget: budget) }
        while true {
            do throws(CacheError) {
                if let count = try await take(read, budget: budget) {
                    state.withLock { $0.counts.add(fromOrigin: Int64(count)) }
                    return count
                }
                try await reopen(at: read.offset, budget: budget)
            } catch {
                try await budget.retry(after: error)
                try await reopen(at: read.offset, budget: budget)
            }
        }
    }

    /// Tells the end behind the last byte, once the body was compared.
    private func end(_ read: Read, budget: ReadBudget) async throws(CacheError) -> Int {
        switch state.withLock({ $0.piece.bytes }) {
        case .seekable(let source):
            return try await source.read(read, until: budget.deadline)
        case .sequential(let reader):
            try reader.compare()
            return 0
        }
    }

    /// Waits for bytes of the last response; nil if it does not contain them.
    private func take(_ read: Read, budget: ReadBudget) async throws(CacheError) -> Int? {
        let piece = state.withLock { $0.piece }
        switch piece.bytes {
        case .seekable(let source):
            guard read.offset >= piece.start else { return nil }
            return try await source.read(read, until: budget.deadline)
        case .sequential(let reader):
            while true {
                try budget.checkStop()
                switch try reader.take(
                    at: read.offset,
                    atMost: read.destination.count,
                    within: ReadAheadPlanner.Options().bridge
                ) {
                case .bytes(let bytes):
                    return read.destination.copy(bytes)
                case .awaited(let seen):
                    try budget.check(read.offset)
                    await budget.wait(on: reader.window.signal, after: seen)
                case .end:
                    // The requested piece may have ended before the whole.
                    return length.map { reader.window.position < $0 } ?? false ? nil : 0
                case .outOfReach:
                    return nil
                }
            }
        }
    }

    /// The response to a request, as long as the read has time for it.
    private func response(
        to request: CacheRequest,
        at offset: Int64,
        budget: ReadBudget
    ) async throws(CacheError) -> CacheResponse {
        let signal = ProgressSignal()
        let latch = Latch<CacheResponse> { signal.bump() }
        let fetching = Task { [fetch] in
            do throws(CacheError) {
                latch.complete(with: .success(try await fetch(request)))
            } catch {
                latch.complete(with: .failure(error))
            }
        }
        defer { fetching.cancel() }
        while true {
            let seen = signal.version
            if let outcome = latch.outcome { return try outcome.get() }
            try budget.checkStop()
            try budget.check(offset)
            await budget.wait(on: signal, after: seen)
        }
    }

    /// Requests the bytes from `offset`; they must be of the same representation.
    private func reopen(at offset: Int64, budget: ReadBudget) async throws(CacheError) {
        var request = request
        request.range = offset == 0 ? nil : .openEnded(from: offset)
        let response = try await response(to: request, at: offset, budget: budget)
        try response.requireSuccess(of: request)
        guard response.head.isSameShape(as: head), response.completeLength == length,
            (response.head.validator != nil && response.head.isOfSameResource(as: head))
                || offset == 0
        else {
            throw CacheError(
                .representationChanged,
                "\(request.target.redacted) cannot be continued at byte \(offset)"
            )
        }
        let piece = Piece(bytes: response.body.source.open(), start: offset)
        let before = state.withLock { state in
            defer { state.piece = piece }
            return state.piece
        }
        // Its objects are released outside the lock.
        withExtendedLifetime(before) {}
    }
}
