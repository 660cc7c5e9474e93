import HTTPCaching
import HTTPTypes

/// Takes a transfer's bytes to its disk entry, or past the disk to the one reader that wants them.
///
/// | mode | leaves it by |
/// | --- | --- |
/// | `idle` | a head: `storing` or `passing`; a 304 leaves it `idle` |
/// | `storing` | a new generation: `storing` or `passing`; a disk that refuses: `passing` |
/// | `passing` | a new generation, before any byte is out |
///
/// The downloader calls it from one task, so that no two steps of it overlap.
final class StoringSink: DownloadSink {
    enum Mode: Sendable {
        case idle
        case storing(SharedTransfers.Generation, BodyWriter?)
        case passing(PassThroughChannel, StoredResponse)
    }

    /// Stored bytes in a row, fetched by others meanwhile, that are worth a new request behind
    /// them.
    private static let worthStopping: Int64 = 1 << 20

    let operation: DownloadOperation
    let context: TransferContext
    let state: Guarded<State>

    struct State: Sendable {
        var mode = Mode.idle
        /// Body bytes accepted so far.
        var received: Int64 = 0
        /// Body bytes that the disk has taken so far.
        var stored: Int64 = 0
        /// Digests what goes past the disk, where it is the whole of something.
        var digests: PassingDigests?
        /// Where the bytes end that a request wants.
        var end: Int64
        /// Whether bytes that are stored come again, because the origin does not know ranges.
        var repeatsStored = false
        /// Keeps what passes, where it is a part that nothing may be joined to.
        var part: DownloadOperation.PartWriter?
        /// The room that was set aside for what is stored.
        var promise: RoomPromise?
        /// Where the bytes end that went past the disk.
        var passed: Int64 = 0
        /// How the reader keeps up with what goes past the disk.
        var pace: ConsumerPace
        /// Body bytes since readers were told last; nil where there is nothing to tell.
        var untold: Int64?
    }

    init(_ operation: DownloadOperation, context: TransferContext) {
        self.operation = operation
        self.context = context
        let now = operation.origins.time.monotonicTime()
        state = Guarded(State(end: operation.plan.range.upperBound, pace: ConsumerPace(now: now)))
    }

    /// Goes over to another mode.
    ///
    /// What the one before owned may be the last share in an entry, whose end takes other locks.
    @discardableResult
    func enter(_ next: Mode) -> Mode {
        state.withLock { state in
            defer { state.mode = next }
            return state.mode
        }
    }

    /// The body bytes after which readers are told, though more are at hand.
    private static let worthTelling: Int64 = 64 << 10

    /// Wakes readers, if there is something new for them.
    func tell() {
        if state.withLock({ $0.untold.take() }) != nil { operation.shared.signal.bump() }
    }

    /// There is something new for readers: they are told of it before the transfer waits or ends,
    /// or once it is much, so that a small body costs them one change of thread.
    func noteNews(_ count: Int64 = 0) {
        let isMuch = state.withLock { state in
            let untold = (state.untold ?? 0) + count
            state.untold = untold
            return untold >= Self.worthTelling
        }
        if isMuch { tell() }
    }

    func willWait() { tell() }

    /// The body is over, but not the transfer: what follows may take long, unless the body is
    /// brief.
    func didEndBody() {
        if let generation, !isBrief(generation) { tell() }
    }

    /// Whether all of a body is stored soon enough for its readers to be told once, at the end.
    private func isBrief(_ generation: SharedTransfers.Generation) -> Bool {
        // What is pinned is synced before a write returns.
        !operation.request.isPinned
            && generation.entry.completeLength.map { $0 <= Self.worthTelling } ?? false
    }

    var origins: Origins { operation.origins }
    var recorder: Recorder { operation.recorder }

    /// Body bytes accepted so far.
    var bytesReceived: Int64 { state.withLock { $0.received } }

    /// Body bytes that went to the disk so far.
    var bytesStored: Int64 { state.withLock { $0.stored } }

    /// What the bytes go into; nil where they are not stored.
    var generation: SharedTransfers.Generation? {
        guard case .storing(let generation, _) = state.withLock({ $0.mode }) else { return nil }
        return generation
    }

    /// What the bytes past the disk are compared with at their end; nil for nothing.
    var passingDigests: PassingDigests? {
        get { state.withLock { $0.digests } }
        set { state.withLock { $0.digests = newValue } }
    }

    // MARK: DownloadSink

    func didReceiveHead(_ head: DownloadHead) async throws(CacheError) {
        switch head.kind {
        case .newGeneration(let start): try await beginGeneration(head, start)
        case .continuing(let offset, let length):
            try continueGeneration(head, from: offset, length: length)
        case .notModified:
            operation.didConfirm(head, context.report)
            noteNews()
        }
    }

    func write(_ chunk: BodyChunk, at offset: Int64) async throws(CacheError) {
        guard !offset.addingReportingOverflow(Int64(chunk.count)).overflow else {
            throw CacheError(.originFailed, "body bytes behind the last one that has a number")
        }
        // Its slot may have been taken for a player.
        if !context.hasSlot {
            tell()
            try await context.unstall()
        }
        state.withLock { $0.received += Int64(chunk.count) }
        if !origins.bandwidth.isUnlimited {
            tell()
            try await origins.bandwidth.take(chunk.count, context.priority)
        }
        switch state.withLock({ $0.mode }) {
        case .idle:
            throw CacheError(.originFailed, "body bytes without a representation")
        case .passing(let channel, _):
            if let rest = notPassed(of: chunk, at: offset) {
                let position = offset + Int64(chunk.count - rest.count)
                passingDigests?.take(rest, at: position)
                keepPart(rest, at: position)
                try await pass(rest, to: channel)
            }
        case .storing(let generation, let shared):
            if !isBrief(generation) { tell() }
            do throws(CacheError) {
                try store(chunk, at: offset, generation, shared)
            } catch {
                try await bypassDisk(chunk, at: offset, generation, error)
            }
        }
        let end = offset + Int64(chunk.count)
        context.didAdvance(to: end)
        noteNews(Int64(chunk.count))
        try await pauseForReaders(at: end)
    }

    func shouldStop(at offset: Int64) -> Bool {
        let (mode, end, repeatsStored) = state.withLock { ($0.mode, $0.end, $0.repeatsStored) }
        // An origin without ranges sends on; no request has asked for that.
        if offset >= end, !mode.isAnswerOfItsOwn { return true }
        if let lingeringEnd = context.lingeringEnd, offset >= lingeringEnd { return true }
        guard case .storing(let generation, _) = mode, !repeatsStored,
            generation.head.validator != nil,
            let stored = generation.entry.storedRange(at: offset)
        else { return false }
        return stored.upperBound - offset >= Self.worthStopping
    }

    func canReplaceGeneration() -> Bool {
        guard case .passing(let channel, _) = state.withLock({ $0.mode }) else { return true }
        return !channel.hasDelivered
    }

    /// Where the stored bytes of the present generation are; nil where they go past the disk.
    private var comparableEntry: DiskEntry? {
        switch state.withLock({ $0.mode }) {
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

    func isStored(_ bytes: UnsafeRawBufferPointer, at offset: Int64) -> Bool {
        let (end, overflow) = offset.addingReportingOverflow(Int64(bytes.count))
        guard let entry = comparableEntry, !overflow else { return false }
        let stored = Self.readAll(entry, from: offset, to: end)
        return stored.count == bytes.count && stored.elementsEqual(bytes)
    }

    func didProgress(_ progress: DownloadProgress) {
        operation.request.onProgress?(progress)
        recorder.didProgress(progress, of: operation.request.key)
    }

    func willRetry(_ retry: DownloadRetry) {
        let request = operation.request
        tell()
        request.onNotice?(retry.isForNetwork ? .waitingForNetwork : .retrying(retry))
        recorder.willRetry(retry, request.key, request.target)
    }

    /// Ends the transfer's part in entry and channel.
    ///
    /// - Throws: when the end of the body cannot be recorded, which costs the entry its length and
    ///   nobody a byte.
    func finish(_ result: Result<DownloadOutcome, CacheError>) throws(CacheError) {
        defer { setPromise(nil) }
        switch state.withLock({ $0.mode }) {
        case .idle:
            break
        case .passing(let channel, _):
            endPart()
            channel.finish(result.map(\.end.bodyEnd))
        case .storing(let generation, let shared):
            try finishStoring(generation, shared, result)
        }
    }

    // MARK: Bytes

    private func store(
        _ chunk: BodyChunk,
        at offset: Int64,
        _ generation: SharedTransfers.Generation,
        _ shared: BodyWriter?
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
            // Bytes before the first whole block cannot be stored; nobody asks for them alone.
            guard let start = BlockTable.start(atOrBehind: offset),
                start < offset + Int64(chunk.count)
            else { return }
            begun = try generation.entry.beginWriting(
                at: start,
                within: state.withLock { $0.promise }
            )
            enter(.storing(generation, begun))
        }
        let skipped = Int(max(0, begun.position - offset))
        guard skipped < chunk.count else { return }
        try chunk.withUnsafeBytes { (bytes) throws(CacheError) in
            try begun.write(UnsafeRawBufferPointer(rebasing: bytes[skipped...]))
        }
        state.withLock { $0.stored += Int64(chunk.count - skipped) }
    }

    /// The room for another generation, or for none.
    func setPromise(_ next: RoomPromise?) {
        let before = state.withLock { state in
            defer { state.promise = next }
            return state.promise
        }
        before?.end()
    }

    /// Ends a fill; what was less than a block is not on disk, so it was not stored.
    func end(_ shared: BodyWriter) {
        let lost = Int64(shared.end())
        state.withLock { $0.stored -= lost }
    }

    /// Gives the slot back while all readers have stopped reading (invariant 12).
    ///
    /// Only where the download can go on after the connection was lost over it; what cannot be
    /// resumed had better come to its end.
    private func pauseForReaders(at offset: Int64) async throws(CacheError) {
        guard generation?.head.validator != nil,
            operation.shared.haveReadersStopped(
                context.id,
                at: offset,
                now: origins.time.monotonicTime()
            )
        else { return }
        tell()
        context.stall()
        await operation.shared.waitForReader(of: context.id, at: offset, time: origins.time)
        try await context.unstall()
    }

    // MARK: The end

    private func finishStoring(
        _ generation: SharedTransfers.Generation,
        _ shared: BodyWriter?,
        _ result: Result<DownloadOutcome, CacheError>
    ) throws(CacheError) {
        guard case .success(let outcome) = result,
            case .completed(let length?) = outcome.end,
            generation.entry.completeLength == nil, length == shared?.position ?? 0
        else {
            if let shared { end(shared) }
            return
        }
        do throws(CacheError) {
            // The end of a body of unknown length; an empty one has had no fill yet.
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

extension StoringSink.Mode {
    /// Whether the body belongs to a response that no range was taken of: an error, a redirect, or
    /// one that nothing can be joined to later.
    fileprivate var isAnswerOfItsOwn: Bool {
        switch self {
        case .idle: false
        case .storing(let generation, _):
            generation.received != nil && generation.head.validator == nil
        case .passing(let channel, _): channel.end == .max
        }
    }
}

extension DownloadOutcome.End {
    /// Where the body ends, if the transfer has seen its end.
    fileprivate var bodyEnd: Int64? {
        guard case .completed(let length) = self else { return nil }
        return length
    }
}
