import HTTPCaching
import HTTPTypes

/// The work of one transfer: brings a range of one representation, or asks whether it has changed.
struct DownloadOperation: Sendable {
    let storage: Storage
    let origins: Origins
    let shared: SharedTransfers
    /// The queue's group of this transfer; not always that of the fill.
    let group: TransferGroup
    let request: CacheRequest
    let plan: DownloadPlan
    /// What the bytes are joined to if the origin still has it.
    let base: SharedTransfers.Generation?
    /// What a 304 is about.
    let stored: StoredEntry?
    /// Which of several variants a 304 may be about (RFC 9111 §4.1).
    var variants: [StoredEntry] = []
    /// Whether nothing was stored when the request looked, so that what is there by now is news.
    var isAfterMiss = false
    /// The body that was stored and will not do, if there was one.
    var lacking: UInt64?
    /// The byte of `base` that was missing when the transfer was asked for.
    var firstMissing: Int64?
    /// Whether others must not join: what the disk refuses goes to one reader, and this transfer
    /// was made for one that has been left out before.
    var isForOneReader = false

    var recorder: Recorder { storage.recorder }

    /// Brings the bytes; on a thread that may block on the disk, once it has waited for the origin.
    func run(_ context: TransferContext) async -> Result<Void, CacheError> {
        if let brought = broughtMeanwhile() {
            shared.didReceiveHead(
                .storing(brought),
                report: context.report,
                group: shared.joinableGroup(for: brought.entry)
            )
            return .success(())
        }
        let sink = StoringSink(self, context: context)
        recorder.didStart(request.key, request.target, at: plan.range.lowerBound)
        request.onNotice?(.started(offset: plan.range.lowerBound))
        // The notice may have cancelled it, before there is a task to cancel.
        guard !context.isCancelled else { return .failure(.leftTransfer) }
        var result = await download(into: sink)
        sink.didEndBody()
        if case .success(let outcome) = result, let failure = mismatchInPassing(sink, outcome) {
            result = .failure(failure)
        }
        // Before any request is told: those from now on get a transfer, not this one's failure.
        if case .failure = result { context.shrinkCoverage(to: 0) }
        do throws(CacheError) {
            try sink.finish(result)
        } catch {
            recorder.didFailToStore(request.key, request.target, error)
        }
        if let failure = judge(sink.generation, result) { result = .failure(failure) }
        didEnd(result, sink, context.report)
        recorder.didFinish(
            request.key,
            request.target,
            result,
            received: sink.bytesReceived,
            stored: sink.bytesStored,
            isComplete: sink.generation?.entry.isComplete ?? false
        )
        // Subscribers are told by their shares, which end once this returns.
        if context.isAbandoned { shared.signal.bump() }
        return result.map { _ in }
    }

    /// Compares a body that is complete now with what was promised; one that may gets the name of
    /// what is pinned, however the transfer ended: its last reader may have left with the last
    /// byte.
    ///
    /// - Returns: what there is to object to.
    private func judge(
        _ generation: SharedTransfers.Generation?,
        _ result: Result<DownloadOutcome, CacheError>
    ) -> CacheError? {
        guard let generation else { return nil }
        var isOver = generation.entry.isSuccessor
        if case .success(let outcome) = result, case .completed = outcome.end { isOver = true }
        if isOver, let failure = integrityFailure(of: generation) { return failure }
        guard generation.entry.hasFollowedPinned else { return nil }
        do throws(CacheError) {
            try generation.entry.takeName()
        } catch {
            recorder.didFailToStore(request.key, request.target, error)
        }
        // A hit may have promoted the old one meanwhile.
        storage.memory.remove(generation.entry.key)
        return nil
    }

    /// What another transfer has begun to bring between the request's look and this transfer's
    /// start.
    ///
    /// Its bytes are shared, also those that it has passed: each is fetched once (invariant 8).
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
        _ result: Result<DownloadOutcome, CacheError>,
        _ sink: StoringSink,
        _ report: TransferReport
    ) {
        guard case .success(let outcome) = result else { return }
        if request.relay == nil { origins.didLearn(from: outcome, of: request) }
        if case .unsuccessful(let response) = outcome.end {
            didEnd(with: response, outcome, report)
        }
        if outcome.areRangesUntrusted, let generation = sink.generation,
            !generation.head.flags.contains(.withoutRanges)
        {
            var head = generation.head
            head.flags.insert(.withoutRanges)
            update(generation.entry, head)
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
