import HTTPCaching
import HTTPTypes

/// The work of one transfer: fetches a range of one representation, or validates a stored one.
struct DownloadOperation: Sendable {
    let storage: Storage
    let origins: Origins
    let shared: SharedTransfers
    /// The queue's group of this transfer; may differ from the group of ``shared``.
    let group: TransferGroup
    let request: CacheRequest
    private(set) var plan: DownloadPlan
    /// The generation to combine the bytes with, if the origin still has that representation.
    let base: SharedTransfers.Generation?
    /// The stored response that a 304 confirms.
    let stored: StoredEntry?
    /// The variants one of which a 304 may confirm (RFC 9111 §4.1).
    var variants: [StoredEntry] = []
    /// Whether the lookup found nothing, so that an entry found now is new.
    var isAfterMiss = false
    /// The generation of the stored body that cannot answer the request, if there was one.
    var lacking: UInt64?
    /// The byte of `base` that was missing when the transfer was requested.
    var firstMissing: Int64?
    /// Whether other requests must not join: one reader gets the bytes that the disk refuses, and
    /// this transfer is for a reader that another transfer could not serve.
    var isForOneReader = false

    var recorder: Recorder { storage.recorder }
    var judge: BodyJudge { BodyJudge(storage: storage, origins: origins, request: request) }

    /// The same for fewer bytes.
    func ending(at end: Int64) -> DownloadOperation {
        var operation = self
        operation.plan.range = plan.range.lowerBound..<min(plan.range.upperBound, end)
        return operation
    }

    /// Fetches the bytes; after the first wait for the origin on a thread that may block on the
    /// disk.
    func run(_ context: TransferContext) async -> Result<Void, CacheError> {
        if let brought = broughtMeanwhile() {
            shared.didReceiveHead(
                .storing(brought),
                of: context,
                group: shared.joinableGroup(for: brought.entry, head: brought.head)
            )
            return .success(())
        }
        let sink = StoringSink(self, context: context)
        recorder.didStart(request.key, target: request.target, at: plan.range.lowerBound)
        request.report(.started(offset: plan.range.lowerBound))
        // The notice may have cancelled it, before there is a task to cancel.
        guard !context.isCancelled else { return .failure(.leftTransfer) }
        var result = await download(into: sink)
        sink.didEndBody()
        // Before any request sees the end: requests from now on get a new transfer, not this
        // failure.
        if case .failure = result { context.update { $0.shrink(to: 0) } }
        do throws(CacheError) {
            try sink.finish(result)
        } catch {
            recorder.didFailToStore(request.key, target: request.target, error: error)
        }
        if let failure = await verify(sink.generation, context: context) {
            result = .failure(failure)
        }
        await didEnd(with: result, sink: sink, context: context)
        recorder.didFinish(
            request.key,
            target: request.target,
            result: result,
            received: sink.bytesReceived,
            stored: sink.bytesStored,
            isComplete: sink.generation?.entry.isComplete ?? false
        )
        return result.map { _ in }
    }

    /// Decides about a complete body, and lets a finished successor take the name of a pinned entry.
    ///
    /// However the transfer ended: its last reader may have left with the last byte.
    ///
    /// - Returns: the broken promise of the origin; nil if there is none.
    private func verify(
        _ generation: SharedTransfers.Generation?,
        context: TransferContext
    ) async -> CacheError? {
        guard let entry = generation?.entry else { return nil }
        // A download counts while bytes may come (invariant 12).
        if let length = entry.completeLength, length > BodyDigester.slice,
            BodyJudge.awaitsDecision(entry) || !request.expectedDigests.isEmpty
        {
            context.stall()
        }
        do throws(CacheError) {
            // What only this request refuses is no failure of the transfer, which others may share.
            _ = try await judge.decide(about: entry, length: shared.completeLength(of: entry))
        } catch {
            // If this task was cancelled, the one that compares does the rest.
            return error.code == .cancelled ? nil : error
        }
        await judge.decideForName(of: entry)
        judge.takeName(entry)
        return nil
    }

    /// The generation that another transfer has begun between the lookup and the start of this one.
    ///
    /// Its bytes are shared, including those already received: each is fetched once (invariant 8).
    private func broughtMeanwhile() -> SharedTransfers.Generation? {
        if let base, let firstMissing, base.entry.storedRange(at: firstMissing) != nil {
            return base
        }
        guard isAfterMiss, let generation = shared.generation, generation.entry.isWritable,
            generation.entry.generation != lacking
        else { return nil }
        return generation
    }

    private func didEnd(
        with result: Result<DownloadOutcome, CacheError>,
        sink: StoringSink,
        context: TransferContext
    ) async {
        guard case .success(let outcome) = result else { return }
        if request.relay == nil { origins.didLearn(from: outcome, of: request) }
        if case .unsuccessful(let response) = outcome.end {
            // The sink has not learned of the head.
            await context.leaveCallersThread()
            didEnd(with: response, outcome: outcome, context: context)
        }
        if outcome.areRangesUntrusted, let generation = sink.generation,
            !generation.head.flags.contains(.withoutRanges)
        {
            var head = generation.head
            head.flags.insert(.withoutRanges)
            update(generation.entry, head: head)
        }
    }

    private func download(into sink: StoringSink) async -> Result<DownloadOutcome, CacheError> {
        do throws(CacheError) {
            let downloader = origins.downloader(for: request.target)
            return .success(try await downloader.run(plan, into: sink))
        } catch {
            return .failure(error)
        }
    }
}
