/// Decides which bytes a reader fetches: at its consumer's position, and a little ahead.
///
/// A player may read at several positions at once, for example a badly interleaved file; each
/// position is a window of its own. A window runs ahead of its consumer by at most a block and a
/// quarter of the bytes read in a row there, or stored in a row in front of it, and by at most ten
/// seconds at the speed of reading; so a consumer that seeks has cost little. A request of a window
/// that reads on stays open and pauses at the bytes wanted by then, so that a long path costs one
/// round trip. Performs no I/O and reads no clock.
struct ReadAheadPlanner {
    struct Options: Hashable, Sendable {
        /// The minimum size of a request in bytes: one block.
        var minimum: Int64 = 64 << 10
        /// The first bytes fetched at the head of a file, where every player reads some.
        var head: Int64 = 256 << 10
        /// The maximum number of bytes that are asked for at once.
        var maximumRequest: Int64 = 4 << 20
        /// The maximum number of bytes fetched ahead of a consumer; 0 fetches nothing ahead.
        var maximumAhead: Int64 = 8 << 20
        /// The number of windows; a new one replaces the least recently used one.
        var windows = 4
        /// A jump by fewer bytes stays in its window: a request costs more than the bytes in
        /// between.
        var bridge = ResourceState.bridge
        /// The length of a run, in bytes, from which a consumer is expected to read on.
        var provenRun: Int64 = 2 << 20
        /// How long the bytes ahead should last.
        var lead: Duration = .seconds(10)
    }

    /// Bytes to fetch for a window.
    struct FetchRequest: Hashable, Sendable {
        let window: Int
        /// The bytes wanted now.
        let range: Range<Int64>
        /// The end of those that the same transfer may bring later: a request that is continued
        /// costs no round trip.
        let limit: Int64
    }

    private struct Window {
        let number: Int
        let start: Int64
        let began: MonotonicTime
        /// The next expected offset.
        var next: Int64
        /// The end of the requested bytes.
        var planned: Int64
        var lastUse: UInt64
        /// The start of the bytes read in a row, or stored in a row before: a player that asks
        /// anew where it has left off reads on.
        var runStart: Int64

        var run: Int64 { next - runStart }
    }

    let options: Options
    private var windows: [Window] = []
    private var uses: UInt64 = 0
    private var lastNumber = 0

    init(options: Options = Options()) {
        self.options = options
    }

    /// The numbers of the current windows.
    var numbers: Set<Int> { Set(windows.map(\.number)) }

    /// Begins a window for bytes that a transfer already fetches.
    ///
    /// - Parameters:
    ///   - opening: the bytes.
    ///   - stored: the number of bytes that are stored in a row in front of them.
    ///   - now: the current time.
    /// - Returns: the number of the window.
    mutating func begin(
        _ opening: Range<Int64>,
        storedBefore stored: Int64,
        now: MonotonicTime
    ) -> Int {
        let index = use(at: opening.lowerBound, now: now)
        windows[index].runStart = opening.lowerBound - stored
        let most = opening.lowerBound.clampedSum(options.maximumRequest)
        windows[index].planned = min(opening.upperBound, most)
        return windows[index].number
    }

    /// The consumer waits for a byte that no request covers.
    ///
    /// - Parameters:
    ///   - offset: the offset of the byte.
    ///   - count: the size of the consumer's buffer in bytes.
    ///   - end: the end of the bytes that it is certain to read; nil if unknown.
    ///   - stored: the number of bytes that are stored in a row in front of it.
    ///   - now: the current time.
    /// - Returns: the bytes to fetch.
    mutating func didMiss(
        _ offset: Int64,
        count: Int64,
        expectedEnd end: Int64?,
        storedBefore stored: Int64,
        now: MonotonicTime
    ) -> FetchRequest {
        let index = use(at: offset, now: now)
        windows[index].runStart = min(windows[index].runStart, offset - stored)
        let size: Int64
        if let end {
            size = max(1, min(end - offset, options.maximumRequest))
        } else {
            let least = offset < options.head ? options.head - offset : options.minimum
            let trusted = min(trusted(windows[index]), options.maximumAhead)
            size = min(max(least, count, trusted), options.maximumRequest)
        }
        let upper = offset.clampedSum(size)
        windows[index].planned = max(upper, windows[index].planned)
        return request(offset..<upper, at: index, expectedEnd: end)
    }

    /// The consumer has received bytes.
    ///
    /// - Parameters:
    ///   - range: the bytes.
    ///   - end: the end of the bytes that it is certain to read; nil if unknown.
    ///   - now: the current time.
    /// - Returns: the bytes to fetch ahead; nil if there are none.
    mutating func didRead(
        _ range: Range<Int64>,
        expectedEnd end: Int64?,
        now: MonotonicTime
    ) -> FetchRequest? {
        let index = use(at: range.lowerBound, now: now)
        windows[index].next = max(windows[index].next, range.upperBound)
        let window = windows[index]
        let planned = max(window.planned, window.next)
        let ahead = ahead(of: window, expectedEnd: end, now: now)
        let remaining = planned - window.next
        // To continue a request costs nothing, and another one as much for few bytes as for many.
        let threshold = readsOn(window) || end != nil ? ahead / 2 : 0
        guard ahead >= options.minimum, remaining <= threshold else {
            windows[index].planned = planned
            return nil
        }
        let size = min(max(options.minimum, ahead - remaining), options.maximumRequest)
        let upper = min(planned.clampedSum(size), end ?? .max)
        guard upper > planned else { return nil }
        windows[index].planned = upper
        return request(planned..<upper, at: index, expectedEnd: end)
    }

    /// A request: for no more than is wanted now if the consumer may only look and leave.
    ///
    /// What an open request has in flight is lost when it leaves.
    private func request(
        _ range: Range<Int64>,
        at index: Int,
        expectedEnd end: Int64?
    ) -> FetchRequest {
        let limit = readsOn(windows[index]) ? end ?? .max : range.upperBound
        return FetchRequest(
            window: windows[index].number,
            range: range,
            limit: max(range.upperBound, limit)
        )
    }

    private func readsOn(_ window: Window) -> Bool { window.run > options.provenRun }

    /// The number of bytes that may be fetched ahead in vain.
    private func trusted(_ window: Window) -> Int64 {
        window.run > 0 ? window.run / 4 + options.minimum : 0
    }

    /// The transfer for an request ends elsewhere: at a block boundary, or at another transfer.
    ///
    /// The next request begins there, so that no byte between two requests is left out.
    mutating func didAdjust(_ request: FetchRequest, to end: Int64) {
        guard let index = windows.firstIndex(where: { $0.number == request.window }),
            windows[index].planned == request.range.upperBound
        else { return }
        windows[index].planned = max(windows[index].next, end)
    }

    private func ahead(of window: Window, expectedEnd end: Int64?, now: MonotonicTime) -> Int64 {
        // A first read in the same instant would divide by zero.
        let elapsed = max(0.001, window.began.duration(to: now).totalSeconds)
        let lasting = Double(window.next - window.start) / elapsed * options.lead.totalSeconds
        // The conversion traps above 2^63.
        let paced = max(2 * options.minimum, Int64(min(lasting, 1e15)))
        let trusted = end == nil ? trusted(window) : .max
        return min(options.maximumAhead, trusted, paced)
    }

    /// The window that `offset` belongs to; a new one replaces the least recently used.
    private mutating func use(at offset: Int64, now: MonotonicTime) -> Int {
        uses += 1
        let near = windows.indices.filter { index in
            let window = windows[index]
            return offset >= max(0, window.next - options.bridge)
                && offset <= max(window.next, window.planned).clampedSum(options.bridge)
        }
        let nearest = near.min {
            abs(windows[$0].next - offset) < abs(windows[$1].next - offset)
        }
        if let nearest {
            windows[nearest].lastUse = uses
            // Skipped bytes were not read.
            windows[nearest].next = max(windows[nearest].next, offset)
            return nearest
        }
        if windows.count >= options.windows,
            let oldest = windows.indices.min(by: { windows[$0].lastUse < windows[$1].lastUse })
        {
            windows.remove(at: oldest)
        }
        lastNumber += 1
        windows.append(
            Window(
                number: lastNumber,
                start: offset,
                began: now,
                next: offset,
                planned: offset,
                lastUse: uses,
                runStart: offset
            )
        )
        return windows.count - 1
    }
}

extension Int64 {
    /// The sum, or `Int64.max` on overflow.
    func clampedSum(_ other: Int64) -> Int64 {
        let (sum, overflow) = addingReportingOverflow(other)
        return overflow ? .max : sum
    }
}

extension ReaderOptions {
    var planner: ReadAheadPlanner.Options {
        var options = ReadAheadPlanner.Options()
        options.maximumAhead = max(0, maximumReadAhead)
        options.windows = max(1, windows)
        return options
    }
}
