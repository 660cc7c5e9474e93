public import FoundationEssentials

/// A ``CacheReader`` for blocking callers: the input callbacks of players written in C.
///
/// Made for `mpv_stream_cb_info`, `AVIOContext`, `GstBaseSrc` and `libvlc_media_new_callbacks`:
/// open, read, seek, size and cancel are ordinary functions. Stored bytes are read on the calling
/// thread without a change of thread; a missing byte blocks it, at most until the read's deadline.
///
/// **Never call ``open(deadline:)`` or a read from a Swift task:** the task's thread belongs to the
/// cooperative pool, which has one thread for each core, and tasks of the same pool fetch the
/// awaited bytes. Players call from their own threads, as intended. All other methods may be called
/// from any thread.
///
/// One reader serves one consumer thread. Releasing it closes it.
public final class BlockingReader: Sendable {
    struct State {
        var reader: CacheReader?
        var position: Int64 = 0
        var isCancelled = false
        var isInterrupted = false
        var lastError: CacheError?
        /// End the calls that wait.
        var stops: [UInt64: @Sendable (CacheError) -> Void] = [:]
        var lastStop: UInt64 = 0
        /// What ``unsafeTryRead(into:)`` waits for.
        var attempt = ReadAttempt()
        /// Ends when all reads that were stopped have come to their end.
        var leaving: Task<Void, Never>?
        /// Says whether there is something to read; made when it is asked for.
        var readiness: EventDescriptor?

        /// Why no call may wait; nil if it may.
        var stopped: CacheError? {
            if isCancelled { return .readCancelled }
            return isInterrupted ? .readInterrupted : nil
        }
    }

    /// The request to read.
    public let request: CacheRequest
    /// The options of reads that do not override them.
    public let options: ReaderOptions

    let time: any TimeSource
    let openReader: Opening
    /// Makes the reader at once if that needs no wait.
    private let readerAtHand: @Sendable () -> CacheReader?
    let state = Guarded(State())

    /// Opens the underlying reader.
    typealias Opening = @Sendable () async throws(CacheError) -> CacheReader

    init(
        _ request: CacheRequest,
        options: ReaderOptions,
        time: any TimeSource,
        atHand readerAtHand: @escaping @Sendable () -> CacheReader? = { nil },
        open: @escaping Opening
    ) {
        self.request = request
        self.options = options
        self.time = time
        self.readerAtHand = readerAtHand
        openReader = open
    }

    deinit {
        state.withLock { $0.attempt.stop() }?.cancel()
    }

    // MARK: Properties

    /// The length of the whole representation in bytes; nil while unknown, as before the opening.
    ///
    /// Never blocks.
    public var size: Int64? { state.withLock { $0.reader }?.size }

    /// Whether any bytes can be read without those before them; false before the opening.
    public var isSeekable: Bool { state.withLock { $0.reader }?.isSeekable ?? false }

    /// The offset of the next byte that ``unsafeRead(into:deadline:)`` reads.
    public var position: Int64 { state.withLock { $0.position } }

    /// The error of the last failed opening or read, for players that cannot tell a failure from
    /// the end.
    public var lastError: CacheError? { state.withLock { $0.lastError } }

    /// The bytes that can be read without the origin now; none before the opening.
    ///
    /// See ``CacheReader/storedRanges``.
    public var storedRanges: [Range<Int64>] { reader?.storedRanges ?? [] }

    /// The underlying reader; nil before the opening.
    public var reader: CacheReader? { state.withLock { $0.reader } }

    // MARK: Opening and reading; these block

    /// Waits until the head of the representation is known; returns at once if it is.
    ///
    /// The first read opens the reader, too. Stored, fresh responses are opened without the
    /// network.
    ///
    /// - Parameter deadline: the maximum time to wait; nil for ``ReaderOptions/deadline``.
    /// - Throws: `.timedOut`; `.cancelled`, `.interrupted`; the errors of opening a
    ///   ``CacheReader``. It may be called again.
    public func open(deadline: Duration? = nil) throws(CacheError) {
        _ = try noting { () throws(CacheError) in
            try opened(until: end(deadline))
        }
    }

    /// Reads from `offset`; the cursor does not move.
    ///
    /// Returns stored bytes at once, even if they are fewer than `count`.
    ///
    /// - Parameters:
    ///   - offset: the offset of the first byte.
    ///   - count: the maximum number of bytes, at least 1; at most 4 MiB are returned.
    ///   - deadline: the maximum time to try; nil for ``ReaderOptions/deadline``.
    /// - Returns: the bytes; empty at the end, and only there.
    /// - Throws: the errors of ``CacheReader/read(at:count:deadline:)``, and of opening the reader.
    public func read(
        at offset: Int64,
        count: Int,
        deadline: Duration? = nil
    ) throws(CacheError) -> Data {
        let buffer = try ReadBuffer(forReading: count)
        let got = try read(
            Read(offset: offset, destination: ReadDestination(buffer)),
            deadline: deadline
        )
        return buffer.data(count: got)
    }

    /// Reads from the cursor, and advances it by the number of bytes.
    ///
    /// Returns available bytes at once, even if they do not fill the buffer.
    ///
    /// - Parameters:
    ///   - buffer: the destination.
    ///   - deadline: the maximum time to try; nil for ``ReaderOptions/deadline``.
    /// - Returns: the number of bytes; 0 at the end, and only there.
    /// - Throws: the errors of ``CacheReader/unsafeRead(at:into:deadline:)``, and of opening the
    ///   reader.
    public func unsafeRead(
        into buffer: UnsafeMutableRawBufferPointer,
        deadline: Duration? = nil
    ) throws(CacheError) -> Int {
        let offset = position
        let count = try unsafeRead(at: offset, into: buffer, deadline: deadline)
        // A concurrent seek wins.
        state.withLock { if $0.position == offset { $0.position += Int64(count) } }
        return count
    }

    /// Reads from `offset`; the cursor does not move.
    ///
    /// - Parameters:
    ///   - offset: the offset of the first byte.
    ///   - buffer: the destination.
    ///   - deadline: the maximum time to try; nil for ``ReaderOptions/deadline``.
    /// - Returns: the number of bytes; 0 at the end.
    /// - Throws: the errors of ``unsafeRead(into:deadline:)``.
    public func unsafeRead(
        at offset: Int64,
        into buffer: UnsafeMutableRawBufferPointer,
        deadline: Duration? = nil
    ) throws(CacheError) -> Int {
        try read(
            Read(offset: offset, destination: ReadDestination(buffer: buffer)),
            deadline: deadline
        )
    }

    /// Reads from `offset` until the buffer is full or the end is reached; the cursor does not move.
    ///
    /// - Parameters:
    ///   - offset: the offset of the first byte.
    ///   - buffer: the destination.
    /// - Returns: the number of bytes; fewer than there is room for at the end, and only there.
    /// - Throws: the errors of ``unsafeRead(into:deadline:)``; bytes read before are lost.
    package func unsafeReadFully(
        at offset: Int64,
        into buffer: UnsafeMutableRawBufferPointer
    ) throws(CacheError) -> Int {
        var count = 0
        while count < buffer.count {
            let (place, overflow) = offset.addingReportingOverflow(Int64(count))
            guard !overflow else { break }
            let rest = UnsafeMutableRawBufferPointer(
                rebasing: buffer[count...].prefix(Self.maximumAtOnce)
            )
            let got = try unsafeRead(at: place, into: rest)
            guard got > 0 else { break }
            count += got
        }
        return count
    }

    /// The most bytes asked for at once: the system reads fewer than 2 GiB in one call.
    private static let maximumAtOnce = 1 << 30

    private func read(_ read: Read, deadline: Duration?) throws(CacheError) -> Int {
        try noting { () throws(CacheError) in
            if let count = try takeTried(read) { return count }
            // Stored bytes need no task, and no thread of the concurrency pool.
            if let reader, let count = try readWithoutWaiting(read, from: reader) { return count }
            let end = end(deadline)
            let reader = try opened(until: end)
            if let count = try readWithoutWaiting(read, from: reader) { return count }
            return try wait(for: read, from: reader, until: end)
        }
    }

    /// What a try has fetched for the offset, which no other read could get from a body that is not
    /// stored.
    private func takeTried(_ read: Read) throws(CacheError) -> Int? {
        let finding = state.withLock { state -> ReadAttempt.Finding in
            guard state.stopped == nil else { return .awaited }
            return state.attempt.take(at: read.offset, atMost: read.destination.count)
        }
        switch finding {
        case .bytes(let bytes): return read.destination.copy(bytes)
        case .failure(let error): throw error
        case .awaited: return nil
        case .none(let task):
            leave(task)
            return nil
        }
    }

    private func end(_ deadline: Duration?) -> MonotonicTime {
        time.monotonicTime().advanced(by: deadline ?? options.deadline)
    }

    /// The most bytes that one read returns where it waits.
    private static let maximumWaited = 4 << 20

    /// Waits for the bytes in memory of its own: a read that is stopped returns at once, and what
    /// still writes then must not write to the memory of the caller.
    private func wait(
        for read: Read,
        from reader: CacheReader,
        until end: MonotonicTime
    ) throws(CacheError) -> Int {
        let buffer = ReadBuffer(capacity: min(read.destination.count, Self.maximumWaited))
        let own = Read(offset: read.offset, destination: ReadDestination(buffer))
        let error = CacheError(
            .timedOut,
            "byte \(read.offset) of \(request.target.redacted) did not come in time"
        )
        // A read ends by itself at the deadline, unless it hangs in something that has none.
        let latest = end.advanced(by: .seconds(1))
        let time = time
        let (leaving, attempt) = state.withLock { ($0.leaving, $0.attempt.task) }
        let count = try awaiting(until: (latest, error), isRead: true) {
            [self] () async throws(CacheError) in
            await leaving?.value
            if let attempt {
                await attempt.value
                if let count = try takeTried(own) { return count }
            }
            let left = time.monotonicTime().duration(to: end)
            return try await reader.read(own, deadline: left)
        }
        return read.destination.copy(buffer.data(count: count))
    }

    func readWithoutWaiting(
        _ read: Read,
        from reader: CacheReader
    ) throws(CacheError) -> Int? {
        guard read.offset >= 0 else {
            throw CacheError(.invalidArgument, "cannot read at offset \(read.offset)")
        }
        guard read.destination.count > 0 else { return 0 }
        try reader.control.check()
        var read = read
        read.control = reader.control
        return reader.source.readWithoutWaiting(read)
    }

    func noting<Value>(
        _ body: () throws(CacheError) -> Value
    ) throws(CacheError) -> Value {
        do throws(CacheError) {
            return try body()
        } catch {
            state.withLock { $0.lastError = error }
            throw error
        }
    }

    // MARK: Moving

    /// Moves the cursor; never blocks.
    ///
    /// - Parameter offset: the offset of the next byte to read.
    /// - Throws: `.invalidArgument` for a negative offset or one beyond a known end.
    public func seek(to offset: Int64) throws(CacheError) {
        guard offset >= 0, offset <= size ?? .max else {
            throw CacheError(.invalidArgument, "cannot seek to \(offset)")
        }
        state.withLock { $0.position = offset }
        // What is awaited is no longer what the next read wants.
        tellReadiness()
    }

    // MARK: The opening

    private func opened(until end: MonotonicTime) throws(CacheError) -> CacheReader {
        if let stopped = state.withLock({ $0.stopped }) { throw stopped }
        if let reader { return reader }
        if let reader = readerAtHand() { return adopt(reader) }
        let openReader = openReader
        let error = CacheError(.timedOut, "\(request.target.redacted) was not opened in time")
        return adopt(try awaiting(until: (end, error), openReader))
    }

    /// Takes a reader that was opened; the first one stays.
    func adopt(_ reader: CacheReader) -> CacheReader {
        let (kept, isCancelled, isInterrupted) = state.withLock { state in
            let kept = state.reader ?? reader
            state.reader = kept
            return (kept, state.isCancelled, state.isInterrupted)
        }
        // The reader must learn of calls between the end of the opening and here.
        if isCancelled { kept.cancel() }
        if isInterrupted { tellReader() }
        return kept
    }

    /// Blocks until there is a result, the reader is stopped, or the time is over.
    private func awaiting<Value: Sendable>(
        until deadline: (end: MonotonicTime, error: CacheError),
        isRead: Bool = false,
        _ body: @escaping @Sendable () async throws(CacheError) -> Value
    ) throws(CacheError) -> Value {
        let gate = BlockingGate<Value>()
        let number = try enter { gate.open(with: .failure($0)) }
        let task = Task(priority: .high) {
            do throws(CacheError) {
                gate.open(with: .success(try await body()))
            } catch {
                gate.open(with: .failure(error))
            }
        }
        let alarm = time.alarm(after: time.monotonicTime().duration(to: deadline.end)) {
            gate.open(with: .failure(deadline.error))
        }
        defer {
            state.withLock { _ = $0.stops.removeValue(forKey: number) }
            alarm.cancel()
        }
        do throws(CacheError) {
            return try gate.wait()
        } catch {
            if isRead { leave(task) } else { task.cancel() }
            throw error
        }
    }

    /// Stops a task, without waiting for its end.
    ///
    /// The next read does: a body that is not stored gives each byte once, and two tasks at one time
    /// would take bytes from each other.
    func leave(_ task: Task<Void, Never>?) {
        guard let task else { return }
        task.cancel()
        state.withLock { state in
            let before = state.leaving
            state.leaving = Task {
                await before?.value
                await task.value
            }
        }
    }

    /// Makes a call that is about to wait stoppable.
    ///
    /// - Throws: why it must not wait, if the reader was stopped.
    private func enter(
        _ stop: @escaping @Sendable (CacheError) -> Void
    ) throws(CacheError) -> UInt64 {
        let entered = state.withLock { state -> Result<UInt64, CacheError> in
            if let stopped = state.stopped { return .failure(stopped) }
            state.lastStop += 1
            state.stops[state.lastStop] = stop
            return .success(state.lastStop)
        }
        return try entered.get()
    }
}
