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
    private struct State {
        var reader: CacheReader?
        /// Ends an opening in progress.
        var stopOpening: (@Sendable (CacheError) -> Void)?
        var position: Int64 = 0
        var isCancelled = false
        var isInterrupted = false
        var lastError: CacheError?
    }

    /// The request to read.
    public let request: CacheRequest
    /// The options of reads that do not override them.
    public let options: ReaderOptions

    private let time: any TimeSource
    private let openReader: Opening
    private let state = Guarded(State())

    /// Opens the underlying reader.
    typealias Opening = @Sendable () async throws(CacheError) -> CacheReader

    init(
        _ request: CacheRequest,
        options: ReaderOptions,
        time: any TimeSource,
        open: @escaping Opening
    ) {
        self.request = request
        self.options = options
        self.time = time
        openReader = open
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
            try opened(within: deadline ?? options.deadline)
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

    private func read(_ read: Read, deadline: Duration?) throws(CacheError) -> Int {
        try noting { () throws(CacheError) in
            let deadline = deadline ?? options.deadline
            let start = time.monotonicTime()
            let reader = try opened(within: deadline)
            // Stored bytes need no task, and no thread of the concurrency pool.
            if let count = try readWithoutWaiting(read, from: reader) { return count }
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

    private func readWithoutWaiting(
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

    /// Moves the cursor; never blocks.
    ///
    /// - Parameter offset: the offset of the next byte to read.
    /// - Throws: `.invalidArgument` for a negative offset or one beyond a known end.
    public func seek(to offset: Int64) throws(CacheError) {
        guard offset >= 0, offset <= size ?? .max else {
            throw CacheError(.invalidArgument, "cannot seek to \(offset)")
        }
        state.withLock { $0.position = offset }
    }

    // MARK: Stopping; from any thread

    /// Ends the opening and all current and later reads with `.cancelled`; returns at once.
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

    /// Reverts ``interrupt()``.
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
        // A thread waits: one of its priority must not be stuck behind background work.
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
        // After the tasks exist: a cancellation that came first ends them through the gate.
        begin { gate.open(with: .failure($0)) }
        let result = Result { () throws(CacheError) in try gate.wait() }
        return try end(result)
    }

    /// Makes the opening stoppable; stops it at once if the reader was stopped before.
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
        // The reader must learn of calls between the end of the opening and here.
        if isCancelled { reader?.cancel() }
        if isInterrupted { reader?.interrupt() }
        return try result.get()
    }
}
