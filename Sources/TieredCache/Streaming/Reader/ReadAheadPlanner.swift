/// Decides what a reader fetches: where its consumer is, and a little ahead of it.
///
/// A player may read in several places at once, as a badly interleaved file makes it do; each place
/// is a window of its own. A window runs ahead of its consumer by at most a quarter of what was
/// read in a row there, and by at most ten seconds at the speed at which it was read; so a consumer
/// that goes elsewhere has cost little. Where the way to the origin is long, it runs ahead by what
/// the way holds (``PathEstimate``), up to all that was read in a row. Performs no I/O and reads no
/// clock.
struct ReadAheadPlanner {
    struct Options: Hashable, Sendable {
        /// The least that is worth a request: one block.
        var minimum: Int64 = 64 << 10
        /// What is fetched first at the head of a file, where every player reads some.
        var head: Int64 = 256 << 10
        /// The most that one request asks for.
        var maximumRequest: Int64 = 4 << 20
        /// The most that is fetched ahead of a consumer; 0 fetches nothing ahead.
        var maximumAhead: Int64 = 8 << 20
        /// How many places are followed; the one used least recently is given up for a new one.
        var windows = 4
        /// A jump by less than this is the same place: a request costs more than the bytes between.
        var bridge: Int64 = 256 << 10
        /// For how long what is ahead should last.
        var lead: Duration = .seconds(10)
    }

    /// Bytes to be fetched for a window.
    struct Order: Hashable, Sendable {
        let window: Int
        let range: Range<Int64>
    }

    private struct Window {
        let number: Int
        let start: Int64
        let began: MonotonicTime
        /// Where the consumer is expected next.
        var next: Int64
        /// The end of what was ordered.
        var planned: Int64
        var lastUse: UInt64

        var run: Int64 { next - start }

        /// Whether it is not read from the beginning on: then the consumer may soon be elsewhere.
        var isSeek: Bool { start > 0 }
    }

    let options: Options
    private var windows: [Window] = []
    private var uses: UInt64 = 0
    private var lastNumber = 0
    private var path = PathEstimate()

    init(options: Options = Options()) {
        self.options = options
    }

    /// The windows that are followed.
    var numbers: Set<Int> { Set(windows.map(\.number)) }

    /// A consumer begins where bytes are on their way already.
    ///
    /// - Parameters:
    ///   - opening: those bytes.
    ///   - now: the present instant.
    /// - Returns: the number of the window.
    mutating func begin(_ opening: Range<Int64>, now: MonotonicTime) -> Int {
        let index = use(at: opening.lowerBound, now: now)
        let most = opening.lowerBound.clampedSum(options.maximumRequest)
        windows[index].planned = min(opening.upperBound, most)
        return windows[index].number
    }

    /// The consumer waits for a byte that nobody has ordered.
    ///
    /// - Parameters:
    ///   - offset: the byte.
    ///   - count: how many it has room for.
    ///   - end: where the bytes end that it is certain to read; nil if it did not say.
    ///   - now: the present instant.
    /// - Returns: what to fetch.
    mutating func didMiss(
        _ offset: Int64,
        count: Int64,
        expectedEnd end: Int64?,
        now: MonotonicTime
    ) -> Order {
        let index = use(at: offset, now: now)
        let size: Int64
        if let end {
            size = max(1, min(end - offset, options.maximumRequest))
        } else {
            let least = offset < options.head ? options.head - offset : options.minimum
            let trusted = min(
                path.trusted(ofRun: windows[index].run, isSeek: windows[index].isSeek),
                options.maximumAhead
            )
            size = min(max(least, count, trusted), options.maximumRequest)
        }
        let upper = offset.clampedSum(size)
        path.didAsk(for: offset..<upper, now: now)
        path.didWait(for: offset)
        windows[index].planned = max(upper, windows[index].planned)
        return Order(window: windows[index].number, range: offset..<upper)
    }

    /// The consumer has nothing to do before a byte comes that is on its way.
    mutating func didWait(for offset: Int64) {
        path.didWait(for: offset)
    }

    /// The consumer has got bytes.
    ///
    /// - Parameters:
    ///   - range: which.
    ///   - end: where the bytes end that it is certain to read; nil if it did not say.
    ///   - now: the present instant.
    /// - Returns: what to fetch ahead, if anything.
    mutating func didRead(
        _ range: Range<Int64>,
        expectedEnd end: Int64?,
        now: MonotonicTime
    ) -> Order? {
        let index = use(at: range.lowerBound, now: now)
        windows[index].next = max(windows[index].next, range.upperBound)
        path.didGet(range, now: now)
        let window = windows[index]
        let planned = max(window.planned, window.next)
        let ahead = ahead(of: window, expectedEnd: end, now: now)
        guard ahead >= options.minimum, planned - window.next <= ahead / 2 else {
            windows[index].planned = planned
            return nil
        }
        // On a long way a request in half steps would leave the way empty for half of the time.
        let size = min(
            max(options.minimum, path.isLong ? ahead - (planned - window.next) : ahead / 2),
            options.maximumRequest
        )
        let upper = min(planned.clampedSum(size), end ?? .max)
        guard upper > planned else { return nil }
        windows[index].planned = upper
        path.didAsk(for: planned..<upper, now: now)
        return Order(window: window.number, range: planned..<upper)
    }

    /// What brings an order's bytes goes to another end: whole blocks, or another reader's
    /// transfer.
    ///
    /// The next order begins there, so that no byte between two orders is left out.
    mutating func didOrder(_ order: Order, to end: Int64) {
        guard let index = windows.firstIndex(where: { $0.number == order.window }),
            windows[index].planned == order.range.upperBound
        else { return }
        windows[index].planned = max(windows[index].next, end)
    }

    private func ahead(of window: Window, expectedEnd end: Int64?, now: MonotonicTime) -> Int64 {
        let elapsed = max(0.001, window.began.duration(to: now).totalSeconds)
        let lasting = Double(window.run) / elapsed * options.lead.totalSeconds
        let paced = max(2 * options.minimum, Int64(min(lasting, 1e15)))
        let trusted = end == nil ? path.trusted(ofRun: window.run, isSeek: window.isSeek) : .max
        return min(options.maximumAhead, trusted, paced)
    }

    /// The window that `offset` belongs to; a new one takes the place of the one least in use.
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
            // Bytes that were jumped over were not read.
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
                lastUse: uses
            )
        )
        return windows.count - 1
    }
}

extension Int64 {
    /// The sum, or the largest number where it is larger.
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
