import FoundationEssentials
import HTTPCaching

/// Reads what may not be stored, or cannot be: in order, with a new request at each jump.
final class PassingMedium: ReaderMedium {
    private struct State {
        var bytes: OneWayBytes
    }

    let control = ReadControl(signal: ProgressSignal())
    let counts = ByteCounts()
    let length: Int64?
    let storageTrouble: CacheError?
    private let time: any TimeSource
    private let fetch: Fetch
    private let request: CacheRequest
    private let head: StoredResponse
    private let state: Guarded<State>

    /// Asks for a response.
    typealias Fetch = @Sendable (CacheRequest) async throws(CacheError) -> CacheResponse

    init(
        _ response: CacheResponse,
        _ request: CacheRequest,
        time: any TimeSource,
        fetch: @escaping Fetch
    ) {
        self.time = time
        self.fetch = fetch
        self.request = request
        head = response.head
        length = response.completeLength
        storageTrouble = response.storageTrouble
        let bytes = OneWayBytes(
            response.body.source,
            at: response.range.lowerBound,
            signal: control.signal
        )
        state = Guarded(State(bytes: bytes))
    }

    /// An origin that gives its length and a validator can be asked for any part again.
    var isSeekable: Bool { length != nil && head.validator != nil }

    func readAtOnce(_ read: Read) -> Int? {
        if let length, read.offset >= length { return 0 }
        return nil
    }

    func read(_ read: Read, until deadline: MonotonicTime) async throws(CacheError) -> Int {
        var patience = Patience(deadline: deadline)
        while true {
            try control.check()
            let seen = control.signal.version
            do throws(CacheError) {
                if let count = try await take(read, seen: seen, patience) { return count }
            } catch {
                try await patience.retry(after: error, control, time)
                try await reopen(at: read.offset)
            }
        }
    }

    /// Takes bytes if they are there; nil after something has changed.
    private func take(
        _ read: Read,
        seen: UInt64,
        _ patience: Patience
    ) async throws(CacheError) -> Int? {
        if let length, read.offset >= length { return 0 }
        let bytes = state.withLock { $0.bytes }
        let jump = read.offset - bytes.position
        guard jump >= 0, jump <= ReadAheadPlanner.Options().bridge else {
            try await reopen(at: read.offset)
            return nil
        }
        _ = bytes.skip(to: read.offset)
        let isWanted = bytes.position == read.offset
        switch bytes.take(read.destination) {
        case .bytes(let count):
            guard isWanted else { return nil }
            counts.add(fromOrigin: Int64(count))
            return count
        case .awaited:
            try patience.check(read.offset, time)
            await control.wait(after: seen, until: patience.deadline, time: time)
            return nil
        case .end:
            guard let length, bytes.position < length else { return 0 }
            // The piece that was asked for has ended.
            try await reopen(at: read.offset)
            return nil
        case .failed(let error):
            throw error
        }
    }

    /// Asks for the rest from `offset` on; it must be of the same representation.
    private func reopen(at offset: Int64) async throws(CacheError) {
        var request = request
        request.range = offset == 0 ? nil : .openEnded(from: offset)
        let response = try await fetch(request)
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
        let bytes = OneWayBytes(response.body.source, at: offset, signal: control.signal)
        state.withLock { $0.bytes = bytes }
    }
}
