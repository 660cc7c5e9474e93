import HTTPCaching
import HTTPTypes

/// Takes a flight's bytes to its disk entry, or past the disk to the one reader that wants them.
///
/// | mode | leaves it by |
/// | --- | --- |
/// | `idle` | a head: `storing` or `passing`; a 304 leaves it `idle` |
/// | `storing` | a new generation: `storing` or `passing`; a disk that refuses: `passing` |
/// | `passing` | a new generation, before any byte is out |
///
/// The downloader calls it from one task; the lock is for the flight's end, which comes from others.
final class FillSink: DownloadSink {
    enum Mode: Sendable {
        case idle
        case storing(Fill.Generation, DiskFill?)
        case passing(PassThroughChannel, StoredResponse)
    }

    /// Held bytes in a row, fetched by others meanwhile, that are worth a new request behind them.
    private static let worthStopping: Int64 = 1 << 20

    let operation: DownloadOperation
    let context: FlightContext
    private let mode = Guarded(Mode.idle)
    /// Body bytes accepted so far.
    private let received = Guarded<Int64>(0)
    private let stored = Guarded<Int64>(0)
    /// Where the bytes end that somebody wants.
    private let end: Guarded<Int64>

    init(_ operation: DownloadOperation, context: FlightContext) {
        self.operation = operation
        self.context = context
        end = Guarded(operation.plan.range.upperBound)
    }

    private var engine: Engine { operation.engine }

    /// Body bytes accepted so far.
    var bytesReceived: Int64 { received.withLock { $0 } }

    /// Body bytes that went to the disk so far.
    var bytesStored: Int64 { stored.withLock { $0 } }

    /// What the bytes go into; nil where they are not stored.
    var generation: Fill.Generation? {
        guard case .storing(let generation, _) = mode.withLock({ $0 }) else { return nil }
        return generation
    }

    // MARK: DownloadSink

    func didReceiveHead(_ head: DownloadHead) async throws(CacheError) {
        switch head.kind {
        case .newGeneration(let start): try await beginGeneration(head, start)
        case .continuing(let offset, let length):
            try continueGeneration(head, from: offset, length: length)
        case .notModified: operation.didConfirm(head, flight: context.id)
        }
    }

    func write(_ chunk: BodyChunk, at offset: Int64) async throws(CacheError) {
        received.withLock { $0 += Int64(chunk.count) }
        switch mode.withLock({ $0 }) {
        case .idle:
            throw CacheError(.originFailed, "body bytes without a representation")
        case .passing(let channel, _):
            try await pass(chunk, to: channel)
        case .storing(let generation, let fill):
            do throws(CacheError) {
                try store(chunk, at: offset, generation, fill)
            } catch {
                try await bypassDisk(chunk, at: offset, generation, error)
            }
        }
        let end = offset + Int64(chunk.count)
        context.didAdvance(to: end)
        operation.fill.signal.bump()
        try await pauseForReaders(at: end)
    }

    func shouldStop(at offset: Int64) -> Bool {
        let mode = mode.withLock { $0 }
        // An origin without ranges sends on; nobody has asked for that.
        if offset >= end.withLock({ $0 }), !mode.isAnswerOfItsOwn { return true }
        guard case .storing(let generation, _) = mode,
            generation.head.validator != nil,
            let held = generation.entry.held(at: offset)
        else { return false }
        return held.upperBound - offset >= Self.worthStopping
    }

    func canReplaceGeneration() -> Bool {
        guard case .passing(let channel, _) = mode.withLock({ $0 }) else { return true }
        return !channel.hasDelivered
    }

    func didProgress(_ progress: DownloadProgress) {
        engine.didProgress(progress, of: operation.request)
    }

    func willRetry(_ retry: DownloadRetry) {
        engine.willRetry(retry, of: operation.request)
    }

    /// Ends the flight's part in entry and channel.
    ///
    /// - Throws: when the end of the body cannot be recorded, which costs the entry its length and
    ///   nobody a byte.
    func finish(_ result: Result<DownloadOutcome, CacheError>) throws(CacheError) {
        switch mode.withLock({ $0 }) {
        case .idle:
            break
        case .passing(let channel, _):
            channel.finish(result.map(\.end.bodyEnd))
        case .storing(let generation, let fill):
            try finishStoring(generation, fill, result)
        }
    }

    // MARK: Heads

    private func beginGeneration(
        _ head: DownloadHead,
        _ start: GenerationStart
    ) async throws(CacheError) {
        var stored = operation.storedResponse(head, start)
        if operation.plan.wantsWhole(after: start, head.response) {
            // A reader takes all, in order, from an origin that does not know ranges.
            end.withLock { $0 = .max }
            context.extendCoverage(to: .max)
            if head.response.headerFields[.acceptRanges]?.lowercased() != "bytes" {
                stored.flags.insert(.withoutRanges)
            }
        }
        if case .passing(let channel, let known) = mode.withLock({ $0 }), !channel.withdraw() {
            // Its reader knows a head already, so only the same body from its start can follow.
            guard stored.isSameShape(as: known),
                channel.restart(start: start.offset, completeLength: start.completeLength)
            else { throw operation.changed() }
            return
        }
        if operation.held != nil { engine.didRevalidate(operation.request, isUnchanged: false) }
        try await operation.fill.takeTurnToMakeEntry()
        defer { operation.fill.endTurnToMakeEntry() }
        switch operation.makeEntry(stored, head, start) {
        case .success(let entry):
            let generation = Fill.Generation(
                head: stored,
                entry: entry,
                received: operation.receivedResponse(head, start)
            )
            mode.withLock { $0 = .storing(generation, nil) }
            publish(.storing(generation))
        case .failure(let reason):
            beginPassing(
                operation.receivedResponse(head, start) ?? stored,
                from: start.offset,
                length: start.completeLength,
                isVerbatim: start.isVerbatim,
                reason
            )
        }
    }

    private func beginPassing(
        _ head: StoredResponse,
        from offset: Int64,
        length: Int64?,
        isVerbatim: Bool,
        _ reason: DownloadOperation.NotStored
    ) {
        // Nobody else can use what is not stored, so nobody is to join any more.
        context.shrinkCoverage(to: 0)
        let channel = PassThroughChannel(
            start: offset,
            end: isVerbatim ? .max : end.withLock { $0 },
            completeLength: length
        )
        mode.withLock { $0 = .passing(channel, head) }
        publish(.passing(head, channel, reason))
    }

    private func continueGeneration(
        _ head: DownloadHead,
        from offset: Int64,
        length: Int64?
    ) throws(CacheError) {
        guard case .idle = mode.withLock({ $0 }) else { return }
        guard let base = operation.base else {
            throw CacheError(.originFailed, "a part of a representation that is not held")
        }
        let generation = Fill.Generation(
            head: operation.freshened(base, by: head, completeLength: length),
            entry: base.entry
        )
        mode.withLock { $0 = .storing(generation, nil) }
        publish(.storing(generation))
    }

    private func publish(_ answer: Fill.Answer) {
        operation.fill.didReceiveHead(answer, flight: context.id, group: operation.group)
    }

    // MARK: Bytes

    private func store(
        _ chunk: BodyChunk,
        at offset: Int64,
        _ generation: Fill.Generation,
        _ fill: DiskFill?
    ) throws(CacheError) {
        let blockSize = generation.entry.blockSize
        var fill = fill
        if let open = fill, open.position < offset {
            open.end()
            fill = nil
        }
        let begun: DiskFill
        if let fill {
            begun = fill
        } else {
            // Bytes before the first whole block cannot be held; nobody asks for them alone.
            let start = (offset + blockSize - 1) / blockSize * blockSize
            guard start < offset + Int64(chunk.count) else { return }
            begun = try generation.entry.beginFill(at: start)
            mode.withLock { $0 = .storing(generation, begun) }
        }
        let skipped = Int(max(0, begun.position - offset))
        guard skipped < chunk.count else { return }
        try chunk.withUnsafeBytes { (bytes) throws(CacheError) in
            try begun.write(UnsafeRawBufferPointer(rebasing: bytes[skipped...]))
        }
        stored.withLock { $0 += Int64(chunk.count - skipped) }
    }

    /// Gives the slot back while all readers have stopped reading (invariant 12).
    ///
    /// Only where the download can go on after the connection was lost over it; what cannot be
    /// resumed had better come to its end.
    private func pauseForReaders(at offset: Int64) async throws(CacheError) {
        guard generation?.head.validator != nil,
            operation.fill.haveReadersStopped(
                context.id,
                at: offset,
                now: engine.time.monotonicTime()
            )
        else { return }
        context.stall()
        await operation.fill.waitForReader(of: context.id, at: offset, time: engine.time)
        try await context.unstall()
    }

    private func pass(
        _ chunk: BodyChunk,
        to channel: PassThroughChannel
    ) async throws(CacheError) {
        guard channel.isFull else { return try await channel.push(chunk) }
        // A reader that has stopped reading must not hold a slot (invariant 12).
        let time = engine.time
        let context = context
        let patience = Task {
            do {
                try await time.sleep(for: .seconds(1))
                context.stall()
            } catch {
                // Cancelled: there was room in time.
            }
        }
        defer { patience.cancel() }
        try await channel.push(chunk)
        patience.cancel()
        // It must not stall the flight after the slot was asked for again.
        await patience.value
        try await context.unstall()
    }

    /// The disk refused: what it did not take, and all that follows, goes past it (invariant 9).
    private func bypassDisk(
        _ chunk: BodyChunk,
        at offset: Int64,
        _ generation: Fill.Generation,
        _ error: CacheError
    ) async throws(CacheError) {
        guard case .storing(_, let fill) = mode.withLock({ $0 }) else { throw error }
        engine.didFailToStore(operation.request, error)
        let entry = generation.entry
        let position = max(offset, min(fill?.position ?? offset, offset + Int64(chunk.count)))
        let start = min(fill?.sealedEnd ?? offset, position)
        // The unsealed end is readable only while its fill is open.
        let tail = Self.readAll(entry, from: start, to: position)
        let channel = PassThroughChannel(
            start: start,
            end: end.withLock { $0 },
            completeLength: entry.completeLength
        )
        mode.withLock { $0 = .passing(channel, generation.head) }
        context.shrinkCoverage(to: 0)
        if !tail.isEmpty {
            try await channel.push(BodyChunk(tail))
        }
        fill?.end()
        operation.fill.didBypassDisk(
            Fill.Bypass(channel: channel, reason: .disk(error)),
            flight: context.id
        )
        let rest = chunk.withUnsafeBytes { [UInt8]($0[Int(position - offset)...]) }
        if !rest.isEmpty {
            try await pass(BodyChunk(rest), to: channel)
        }
    }

    private static func readAll(_ entry: DiskEntry, from start: Int64, to end: Int64) -> [UInt8] {
        guard start < end else { return [] }
        return [UInt8](unsafeUninitializedCapacity: Int(end - start)) { buffer, count in
            count = entry.read(at: start, into: UnsafeMutableRawBufferPointer(buffer))
        }
    }

    // MARK: The end

    private func finishStoring(
        _ generation: Fill.Generation,
        _ fill: DiskFill?,
        _ result: Result<DownloadOutcome, CacheError>
    ) throws(CacheError) {
        guard case .success(let outcome) = result,
            case .completed(let length?) = outcome.end,
            generation.entry.completeLength == nil, length == fill?.position ?? 0
        else {
            fill?.end()
            return
        }
        do throws(CacheError) {
            // The end of a body of unknown length; an empty one has had no fill yet.
            if let fill {
                try fill.finish()
            } else {
                try generation.entry.beginFill(at: 0).finish()
            }
        } catch {
            operation.fill.didReachEnd(length, of: generation.entry, tail: fill)
            throw error
        }
    }
}

extension FillSink.Mode {
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
    /// Where the body ends, if the flight has seen its end.
    fileprivate var bodyEnd: Int64? {
        guard case .completed(let length) = self else { return nil }
        return length
    }
}
