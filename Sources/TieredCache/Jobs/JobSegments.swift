import HTTPCaching
import Logging

/// Concurrent requests for later parts of one large body.
///
/// Each reads the entry that the job has begun, far enough ahead to get a transfer of its own; the
/// job's reader finds the bytes stored when it arrives there, and fetches those still missing.
struct JobSegments: Sendable {
    /// The minimum length of a part in bytes: a reader would wait for a shorter one, not fetch it.
    static let minimumLength = 2 * GapFetcher.maximumWaitDistance

    private let tasks: [Task<Void, Never>]

    /// Starts the requests; none without a length, a strong validator and an entry.
    init(
        transfers: Transfers,
        count: Int,
        request: CacheRequest,
        response: CacheResponse
    ) {
        guard response.isStored, response.head.validator != nil, response.source == .origin,
            let length = response.completeLength,
            let beginning = response.body.source.fetching
        else {
            tasks = []
            return
        }
        let entry = beginning.entry
        tasks = Self.ranges(length: length, count: count).map { range in
            var part = request
            part.range = .bounded(range)
            part.isSegment = true
            part.onNotice = nil
            part.onProgress = nil
            // The job has applied its policy; the parts belong to the resulting response.
            part.policy = .protocolDefault
            let fetcher = GapFetcher(
                transfers: transfers,
                shared: beginning.fetcher.shared,
                request: part,
                head: response.head
            )
            return Task { await Self.fetch(range, of: entry, using: fetcher) }
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

    /// Ends the requests; on return none begins another transfer.
    func end() async {
        for task in tasks { task.cancel() }
        for task in tasks { await task.value }
    }

    private static func fetch(
        _ range: Range<Int64>,
        of entry: DiskEntry,
        using fetcher: GapFetcher
    ) async {
        let wanted = WantedRange(range)
        let storage = fetcher.transfers.storage
        let opening = EntryOpening(entry: entry, storage: storage, fetcher: fetcher)
        let body = EntryReader(opening, wanted: wanted)
        do throws(CacheError) {
            while try await body.next() != nil {}
        } catch {
            // The job's own reader fetches the missing bytes.
            storage.recorder.logger.debug("a segment was not fetched: \(error)")
        }
    }
}
