public import FoundationEssentials

/// A ``CacheReader`` for callers that block: the input callbacks of players written in C.
///
/// Made for `mpv_stream_cb_info`, `AVIOContext`, `GstBaseSrc` and `libvlc_media_new_callbacks`:
/// open, read, seek, size and cancel, each an ordinary function. What is stored is read on the
/// calling thread without a hop; what is missing blocks it, at most until the read's deadline.
///
/// **Never call ``open(deadline:)`` or a read from a Swift task:** the task's thread belongs to the
/// cooperative pool, which has one thread for each core, and the bytes that are waited for are
/// brought by tasks of the same pool. Players call from threads of their own, which is what this is
/// for. Everything else may be called from anywhere.
///
/// One reader is for one consumer thread. Letting go of it closes it.
public final class BlockingReader: Sendable {
    private struct State {
        var reader: CacheReader?
        /// Ends an opening under way.
        var stopOpening: (@Sendable (CacheError) -> Void)?
        var position: Int64 = 0
        var isCancelled = false
        var isInterrupted = false
        var lastError: CacheError?
    }

    /// What is read.
    public let request: CacheRequest
    /// What reads go by that do not say it themselves.
    public let options: ReaderOptions

    private let time: any TimeSource
    private let openReader: Opening
    private let state = Guarded(State())

    /// Opens the reader behind it.
    typealias Opening = @Sendable () async throws(CacheError) -> CacheReader

    init(
        _ request: CacheRequest,
        _ options: ReaderOptions,
        time: any TimeSource,
        open: @escaping Opening
    ) {
        self.request = request
        self.options = options
        self.time = time
        openReader = open
    }

    // MARK: What is known

    /// The length of the whole, nil while it is not known, as before the opening.
    ///
    /// Never blocks.
    public var size: Int64? { state.withLock { $0.reader }?.size }

    /// Whether bytes anywhere can be had without those before them; false before the opening.
    public var isSeekable: Bool { state.withLock { $0.reader }?.isSeekable ?? false }

    /// Where ``unsafeRead(into:deadline:)`` reads next.
    public var position: Int64 { state.withLock { $0.position } }

    /// What the last opening or read failed with, for players that cannot tell a failure from the
    /// end.
    public var lastError: CacheError? { state.withLock { $0.lastError } }

    /// The reader behind this one; nil before the opening.
    public var reader: CacheReader? { state.withLock { $0.reader } }

    // MARK: Opening and reading; these block

    /// Waits until the head of the representation is known; at once if it is.
    ///
    /// The first read does it by itself. What is stored and fresh is opened without the network.
    ///
    /// - Parameter deadline: how long to wait; nil for ``ReaderOptions/deadline``.
    /// - Throws: `.timedOut`; `.cancelled`, `.interrupted`; what opening a ``CacheReader`` throws.
    ///   It may be tried again.
    public func open(deadline: Duration? = nil) throws(CacheError) {
        _ = try noting { () throws(CacheError) in
            try opened(within: deadline ?? options.deadline)
        }
    }

    /// Reads from `offset` on; the cursor stays.
    ///
    /// Returns what is stored at once, also if that is less than `count`.
    ///
    /// - Parameters:
    ///   - offset: the first byte wanted.
    ///   - count: the most bytes wanted, at least 1; at most 4 MiB are returned.
    ///   - deadline: how long to try; nil for ``ReaderOptions/deadline``.
    /// - Returns: the bytes; empty at the end, and only there.
    /// - Throws: what ``CacheReader/read(at:count:deadline:)`` throws, or opening it.
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

    /// Reads from the cursor on, which moves on by as many bytes.
    ///
    /// Returns what is there at once, also if that is less than there is room for.
    ///
    /// - Parameters:
    ///   - buffer: where the bytes go.
    ///   - deadline: how long to try; nil for ``ReaderOptions/deadline``.
    /// - Returns: the number of bytes; 0 at the end, and only there.
    /// - Throws: what ``CacheReader/unsafeRead(at:into:deadline:)`` throws, or opening it.
    public func unsafeRead(
        into buffer: UnsafeMutableRawBufferPointer,
        deadline: Duration? = nil
    ) throws(CacheError) -> Int {
        let offset = position
        let count = try unsafeRead(at: offset, into: buffer, deadline: deadline)
        // A seek that came meanwhile wins.
        state.withLock { if $0.position == offset { $0.position += Int64(count) } }
        return count
    }

    /// Reads from `offset` on; the cursor stays.
    ///
    /// - Parameters:
    ///   - offset: the first byte wanted.
    ///   - buffer: where the bytes go.
    ///   - deadline: how long to try.
    /// - Returns: the number of bytes; 0 at the end.
    /// - Throws: what ``unsafeRead(into:deadline:)`` throws.
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

    private func read(_ read: Read, deadline: Duration?) throws(CacheError) -> Int {
        try noting { () throws(CacheError) in
            let deadline = deadline ?? options.deadline
            let start = time.monotonicTime()
            let reader = try opened(within: deadline)
            if let count = try atOnce(read, reader) { return count }
            let left = deadline - start.duration(to: time.monotonicTime())
            let gate = BlockingGate<Int>()
            Task(priority: .high) {
                do throws(CacheError) {
                    gate.open(with: .success(try await reader.read(read, deadline: left)))
                } catch {
                    gate.open(with: .failure(error))
                }
            }
            return try gate.wait()
        }
    }

    private func atOnce(_ read: Read, _ reader: CacheReader) throws(CacheError) -> Int? {
        guard read.offset >= 0 else {
            throw CacheError(.invalidArgument, "cannot read at offset \(read.offset)")
        }
        guard read.destination.count > 0 else { return 0 }
        try reader.control.check()
        var read = read
        read.control = reader.control
        return reader.source.readAtOnce(read)
    }

    private func noting<Value>(
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

    /// Moves the cursor; asks nobody and never blocks.
    ///
    /// - Parameter offset: where to read next.
    /// - Throws: `.invalidArgument` before the first byte or beyond a known end.
    public func seek(to offset: Int64) throws(CacheError) {
        guard offset >= 0, offset <= size ?? .max else {
            throw CacheError(.invalidArgument, "cannot seek to \(offset)")
        }
        state.withLock { $0.position = offset }
    }

    // MARK: Stopping; from any thread

    /// Ends the opening and all reads, present and future, with `.cancelled`; returns at once.
    public func cancel() {
        let (reader, stop) = state.withLock { state in
            state.isCancelled = true
            return (state.reader, state.stopOpening)
        }
        reader?.cancel()
        stop?(.readCancelled)
    }

    /// Ends the opening and all reads with `.interrupted` until ``resume()``; returns at once.
    public func interrupt() {
        let (reader, stop) = state.withLock { state in
            state.isInterrupted = true
            return (state.reader, state.stopOpening)
        }
        reader?.interrupt()
        stop?(.readInterrupted)
    }

    /// Takes back ``interrupt()``.
    public func resume() {
        state.withLock { state in
            state.isInterrupted = false
            return state.reader
        }?.resume()
    }

    // MARK: The opening

    private func opened(within deadline: Duration) throws(CacheError) -> CacheReader {
        if let reader = state.withLock({ $0.reader }) { return reader }
        let gate = BlockingGate<CacheReader>()
        let (time, request, openReader) = (time, request, openReader)
        let opening = Task(priority: .high) {
            do throws(CacheError) {
                let reader = try await openReader()
                gate.open(with: .success(reader))
            } catch {
                gate.open(with: .failure(error))
            }
        }
        let alarm = Task {
            do {
                try await time.sleep(for: deadline)
                let error = CacheError(
                    .timedOut,
                    "\(request.target.redacted) was not opened in time"
                )
                gate.open(with: .failure(error))
            } catch {
                // Cancelled: the opening has ended.
            }
        }
        defer {
            opening.cancel()
            alarm.cancel()
        }
        begin { gate.open(with: .failure($0)) }
        let result = Result { () throws(CacheError) in try gate.wait() }
        return try end(result)
    }

    /// Lets the opening be stopped, which may have happened before.
    private func begin(_ stop: @escaping @Sendable (CacheError) -> Void) {
        let (isCancelled, isInterrupted) = state.withLock { state in
            state.stopOpening = stop
            return (state.isCancelled, state.isInterrupted)
        }
        if isCancelled { stop(.readCancelled) }
        if isInterrupted { stop(.readInterrupted) }
    }

    private func end(
        _ result: Result<CacheReader, CacheError>
    ) throws(CacheError) -> CacheReader {
        let reader: CacheReader? = if case .success(let opened) = result { opened } else { nil }
        let (isCancelled, isInterrupted) = state.withLock { state in
            state.stopOpening = nil
            state.reader = reader
            return (state.isCancelled, state.isInterrupted)
        }
        // What came between the opening's end and here is the reader's to know.
        if isCancelled { reader?.cancel() }
        if isInterrupted { reader?.interrupt() }
        return try result.get()
    }
}
