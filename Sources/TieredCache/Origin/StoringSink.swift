import HTTPCaching
import HTTPTypes

/// Writes a transfer's bytes to its disk entry, or to the window of the one reader that wants them.
///
/// | mode | leaves it by |
/// | --- | --- |
/// | `idle` | a head: `storing` or `passing`; a 304 leaves it `idle` |
/// | `storing` | a new generation: `storing` or `passing`; a disk that refuses: `passing` |
/// | `passing` | a new generation, before any byte is out |
///
/// The downloader calls it from one task at a time, so that no two steps of it overlap, and its
/// state needs no lock.
final class StoringSink: DownloadSink, @unchecked Sendable {
    // Unchecked: `state` belongs to the task of the transfer.
    enum Mode: Sendable {
        case idle
        case storing(SharedTransfers.Generation, BodyWriter?)
        case passing(WindowBody, StoredResponse)
    }

    /// A run of stored bytes, in bytes, for which the transfer ends and another one starts behind
    /// it.
    private static let minimumSkippedRun: Int64 = 1 << 20

    let operation: DownloadOperation
    let context: TransferContext
    var state: State

    struct State {
        var mode = Mode.idle
        /// Body bytes accepted so far.
        var received: Int64 = 0
        /// Body bytes that the disk has accepted so far.
        var stored: Int64 = 0
        /// The end of the bytes that a request wants.
        var end: Int64
        /// Whether the origin sends stored bytes again, because it does not support ranges.
        var repeatsStored = false
        /// Whether the readers have asked for nothing more for so long that the transfer ends.
        var hasGivenUp = false
        /// The space reserved for the entry.
        var promise: RoomPromise?
        /// How fast the reader takes bytes that bypass the disk.
        var pace: ConsumerPace
        /// Body bytes since the last notification of readers; nil if there is nothing new.
        var unannounced: Int64?
    }

    init(_ operation: DownloadOperation, context: TransferContext) {
        self.operation = operation
        self.context = context
        let now = operation.origins.time.monotonicTime()
        state = State(end: operation.plan.range.upperBound, pace: ConsumerPace(now: now))
    }

    /// Changes the mode, and returns the last one.
    @discardableResult
    func enter(_ next: Mode) -> Mode {
        defer { state.mode = next }
        return state.mode
    }

    /// The number of body bytes after which readers are notified, even if more are available.
    private static let notificationThreshold: Int64 = 64 << 10

    /// Notifies readers, if there is anything new.
    func notifyReaders() {
        if state.unannounced.take() != nil { operation.shared.signal.bump() }
    }

    /// Notes bytes for readers.
    ///
    /// Readers are notified before the transfer waits or ends, or after 64 KiB, so that a small
    /// body costs them one change of thread.
    func noteChange(_ count: Int64 = 0) {
        let unannounced = (state.unannounced ?? 0) + count
        state.unannounced = unannounced
        if unannounced >= Self.notificationThreshold { notifyReaders() }
    }

    func willWait() { notifyReaders() }

    func withdraw() {
        guard case .storing(let generation, let shared) = state.mode
        else { return }
        enter(.idle)
        if let shared { end(shared) }
        operation.shared.didContradict(generation.entry)
        // It is logged where it cannot be removed.
        _ = operation.storage.quarantine(generation.entry, of: operation.request.key)
        notifyReaders()
    }

    /// The body has ended, but not the transfer: the rest may take long, unless the body is short.
    func didEndBody() {
        if let generation, !isShort(generation) { notifyReaders() }
    }

    /// Whether a body is stored fast enough to notify its readers once, at the end.
    private func isShort(_ generation: SharedTransfers.Generation) -> Bool {
        // A pinned body is synced before a write returns.
        !operation.request.isPinned
            && generation.entry.completeLength.map { $0 <= Self.notificationThreshold } ?? false
    }

    var origins: Origins { operation.origins }
    var recorder: Recorder { operation.recorder }

    /// Body bytes accepted so far.
    var bytesReceived: Int64 { state.received }

    /// Body bytes written to disk so far.
    var bytesStored: Int64 { state.stored }

    /// The generation that the bytes are stored into; nil if they are not stored.
    var generation: SharedTransfers.Generation? {
        guard case .storing(let generation, _) = state.mode else { return nil }
        return generation
    }

    // MARK: DownloadSink

    func didReceiveHead(_ head: DownloadHead) async throws(CacheError) {
        _ = try await begin(with: head, whole: nil)
    }

    func didReceive(
        _ head: DownloadHead,
        whole body: BodyChunk,
        at offset: Int64
    ) async throws(CacheError) {
        guard try await !begin(with: head, whole: body) else { return }
        try await write(body, at: offset)
    }

    /// - Returns: whether `body` is stored, or passed on; otherwise it is to be written.
    private func begin(
        with head: DownloadHead,
        whole body: BodyChunk?
    ) async throws(CacheError) -> Bool {
        await context.leaveCallersThread()
        context.didRespond()
        switch head.kind {
        case .newGeneration(let start):
            let whole = body.flatMap { mayStoreAtOnce($0, start: start) ? $0 : nil }
            return try await beginGeneration(with: head, start: start, whole: whole)
        case .continuing(let offset, let length):
            try continueGeneration(head, from: offset, length: length)
        case .notModified:
            operation.didConfirm(head, of: context)
            noteChange()
        }
        return false
    }

    /// Whether nothing limits a body that has come with its head, or waits for it in part.
    private func mayStoreAtOnce(_ body: BodyChunk, start: GenerationStart) -> Bool {
        let request = operation.request
        guard case .idle = state.mode, start.isWhole, start.end == Int64(body.count),
            !request.isPinned, request.expectedDigests.isEmpty, origins.bandwidth.isUnlimited
        else { return false }
        return request.limiter?.isUnlimited ?? true
    }

    func write(_ chunk: BodyChunk, at offset: Int64) async throws(CacheError) {
        guard !offset.addingReportingOverflow(Int64(chunk.count)).overflow else {
            throw CacheError(.originFailed, "body bytes at offsets beyond the largest integer")
        }
        // The queue may have given its slot to a request of higher priority.
        if !context.hasSlot {
            notifyReaders()
            try await context.unstall()
        }
        state.received += Int64(chunk.count)
        if !origins.bandwidth.isUnlimited {
            notifyReaders()
            try await origins.bandwidth.take(chunk.count, priority: context.priority)
        }
        if let limiter = operation.request.limiter, !limiter.isUnlimited {
            notifyReaders()
            try await limiter.take(chunk.count, priority: context.priority)
        }
        switch state.mode {
        case .idle:
            throw CacheError(.originFailed, "body bytes without a representation")
        case .passing(let window, _):
            try await pass(chunk, at: offset, to: window)
        case .storing(let generation, let shared):
            if !isShort(generation) { notifyReaders() }
            do throws(CacheError) {
                try store(chunk, at: offset, generation: generation, writer: shared)
            } catch {
                try await bypassDisk(chunk, at: offset, generation: generation, error: error)
            }
        }
        let end = offset + Int64(chunk.count)
        let demand = context.didAdvance(to: end, now: origins.time.monotonicTime())
        noteChange(Int64(chunk.count))
        if demand.isWanted || !mayPause(at: end) {
            if demand.haveReadersStopped { try await pauseForReaders() }
        } else {
            try await pauseAtHorizon()
        }
    }

    func shouldStop(at offset: Int64) -> Bool {
        if state.hasGivenUp { return true }
        // An origin without ranges keeps sending bytes that no request wants.
        if offset >= state.end, !isStandalone { return true }
        if context.update({ $0.endLingering(at: offset) }) ?? false { return true }
        guard case .storing(let generation, _) = state.mode, !state.repeatsStored,
            generation.head.validator != nil,
            let stored = generation.entry.storedRange(at: offset)
        else { return false }
        // One that follows another fetches all of that one's bytes again (invariant 8).
        return stored.upperBound - offset >= Self.minimumSkippedRun
            || operation.shared.isBehindAnother(context.id, before: stored.upperBound)
    }

    /// Whether the body belongs to a response that must not be cut at a range: an error, a redirect,
    /// or one without a validator.
    private var isStandalone: Bool {
        switch state.mode {
        case .idle: false
        case .storing(let generation, _):
            operation.request.relay != nil && generation.head.validator == nil
        case .passing(let window, _): window.end == .max
        }
    }

    func canReplaceGeneration() -> Bool {
        guard case .passing(let window, _) = state.mode else { return true }
        return !window.hasDelivered
    }

    /// The entry with the stored bytes of the current generation; nil if they bypass the disk.
    private var comparableEntry: DiskEntry? {
        switch state.mode {
        case .idle: operation.base?.entry
        case .storing(let generation, _): generation.entry
        case .passing: nil
        }
    }

    func storedRun(near offset: Int64) -> Range<Int64>? {
        guard let entry = comparableEntry else { return nil }
        if offset > 0, let run = entry.storedRange(at: offset - 1) { return run }
        let runs = entry.storedRanges.ranges
        return runs.last { $0.upperBound <= offset } ?? runs.first
    }

    func isStored(_ count: Int, of chunk: BodyChunk, at offset: Int64) async -> Bool {
        let (end, overflow) = offset.addingReportingOverflow(Int64(count))
        guard let entry = comparableEntry, !overflow else { return false }
        // The head comes behind the comparison.
        await context.leaveCallersThread()
        let stored = entry.readAll(offset..<end)
        return chunk.withUnsafeBytes { bytes in
            stored.count == count && stored.elementsEqual(bytes[..<count])
        }
    }

    func didProgress(_ progress: DownloadProgress) {
        operation.request.report(progress)
        recorder.didProgress(progress, of: operation.request.key)
    }

    func willRetry(_ retry: DownloadRetry) {
        let request = operation.request
        notifyReaders()
        request.report(retry.isForNetwork ? .waitingForNetwork : .retrying(retry))
        recorder.willRetry(retry, of: request.key, target: request.target)
    }

    /// Ends the transfer's use of its entry or window.
    ///
    /// - Throws: if the end of the body cannot be recorded. The entry then has no complete length;
    ///   readers get all bytes.
    func finish(_ result: Result<DownloadOutcome, CacheError>) throws(CacheError) {
        defer { setPromise(nil) }
        switch state.mode {
        case .idle:
            break
        case .passing(let window, _):
            window.finish(result.map(\.end.bodyEnd))
        case .storing(let generation, let shared):
            try finishStoring(generation, writer: shared, result: result)
        }
    }

    // MARK: Bytes

    private func store(
        _ chunk: BodyChunk,
        at offset: Int64,
        generation: SharedTransfers.Generation,
        writer shared: BodyWriter?
    ) throws(CacheError) {
        var shared = shared
        if let open = shared, open.position < offset {
            end(open)
            shared = nil
        }
        let begun: BodyWriter
        if let shared {
            begun = shared
        } else {
            // Bytes before the first whole block cannot be stored; no request is for them alone.
            guard let start = BlockTable.start(atOrBehind: offset),
                start < offset + Int64(chunk.count)
            else { return }
            begun = try generation.entry.beginWriting(
                at: start,
                within: state.promise
            )
            enter(.storing(generation, begun))
        }
        let skipped = Int(max(0, begun.position - offset))
        guard skipped < chunk.count else { return }
        try chunk.withUnsafeBytes { (bytes) throws(CacheError) in
            try begun.write(UnsafeRawBufferPointer(rebasing: bytes[skipped...]))
        }
        state.stored += Int64(chunk.count - skipped)
    }

    /// Replaces the reserved space by that of another generation, or by none.
    func setPromise(_ next: RoomPromise?) {
        let before = state.promise
        state.promise = next
        before?.end()
    }

    /// Ends a writer; the bytes of its last, incomplete block are not on disk, so they do not
    /// count.
    func end(_ shared: BodyWriter) {
        let lost = Int64(shared.end())
        state.stored -= lost
    }

    // MARK: The end

    private func finishStoring(
        _ generation: SharedTransfers.Generation,
        writer shared: BodyWriter?,
        result: Result<DownloadOutcome, CacheError>
    ) throws(CacheError) {
        guard case .success(let outcome) = result,
            case .completed(let length?) = outcome.end,
            generation.entry.completeLength == nil, length == shared?.position ?? 0
        else {
            if let shared { end(shared) }
            return
        }
        do throws(CacheError) {
            // The end of a body of unknown length; an empty one has no writer yet.
            if let shared {
                try shared.finish()
            } else {
                try generation.entry.beginWriting(at: 0).finish()
            }
        } catch {
            operation.shared.didReachEnd(length, of: generation.entry, tail: shared)
            throw error
        }
    }
}

extension DownloadOutcome.End {
    /// The end of the body, if the transfer has received it.
    fileprivate var bodyEnd: Int64? {
        guard case .completed(let length) = self else { return nil }
        return length
    }
}
