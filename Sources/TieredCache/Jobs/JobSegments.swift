import HTTPCaching
import Logging

/// Further requests that bring later parts of one large body while its beginning comes.
///
/// Each is a reader of the entry that the job has begun, far enough ahead to get a transfer of its
/// own; the job's reader finds their bytes stored when it gets there, and fetches what they did not
/// bring.
struct JobSegments: Sendable {
    /// Shorter ones would be waited for rather than fetched beside each other.
    static let minimumLength = 2 * GapFetcher.worthWaiting

    private let tasks: [Task<CacheError?, Never>]
    /// What a part that stores the last missing block compares with a digest before it ends.
    private let judged: DiskEntry?

    /// Begins what is worth it: nothing without a length, a strong validator and an entry.
    init(
        _ transfers: Transfers,
        count: Int,
        _ request: CacheRequest,
        _ response: CacheResponse
    ) {
        guard response.isStored, response.head.validator != nil, response.source == .origin,
            let length = response.completeLength,
            let beginning = response.body.source.fetching
        else {
            (tasks, judged) = ([], nil)
            return
        }
        let entry = beginning.entry
        judged = beginning.fetcher.awaitsDecision ? entry : nil
        tasks = Self.ranges(length: length, count: count).map { range in
            var part = request
            part.range = .bounded(range)
            part.isSegment = true
            part.onNotice = nil
            part.onProgress = nil
            // The job has asked the origin; its parts are of what that has answered.
            part.policy = .protocolDefault
            let fetcher = GapFetcher(
                transfers: transfers,
                shared: beginning.fetcher.shared,
                request: part,
                head: response.head
            )
            return Task { await Self.bring(range, of: entry, fetcher) }
        }
    }

    /// The parts after the first one, of equal lengths as far as whole blocks allow.
    static func ranges(length: Int64, count: Int) -> [Range<Int64>] {
        let count = min(Int64(count), length / minimumLength)
        guard count > 1 else { return [] }
        let size = length / count / BlockTable.blockSize * BlockTable.blockSize
        return (1..<count).map { index in
            index * size..<(index == count - 1 ? length : (index + 1) * size)
        }
    }

    /// Waits for the decision on a body that is complete now, which another request may have
    /// completed.
    ///
    /// - Throws: ``CacheError/Code/integrityFailed``
    func requireIntegrity() async throws(CacheError) {
        guard let judged, judged.isComplete else { return }
        // A job that is paused must not wait for an origin.
        let failures = await withTaskCancellationHandler {
            var failures: [CacheError] = []
            for task in tasks { if let failure = await task.value { failures.append(failure) } }
            return failures
        } onCancel: {
            cancel()
        }
        if let failure = failures.first(where: { $0.code == .integrityFailed }) { throw failure }
    }

    func cancel() {
        for task in tasks { task.cancel() }
    }

    private static func bring(
        _ range: Range<Int64>,
        of entry: DiskEntry,
        _ fetcher: GapFetcher
    ) async -> CacheError? {
        let wanted = WantedRange(range)
        let storage = fetcher.transfers.storage
        let opening = EntryOpening(entry: entry, storage: storage, fetcher: fetcher)
        let body = EntryReader(opening, wanted)
        do throws(CacheError) {
            while try await body.next() != nil {}
            return nil
        } catch {
            // The job's own reader fetches what this one did not.
            storage.recorder.logger.debug("a segment was not brought: \(error)")
            return error
        }
    }
}
