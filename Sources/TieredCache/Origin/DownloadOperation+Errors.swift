import HTTPCaching
import HTTPTypes

// Errors that are answers.
extension DownloadOperation {
    /// A final status without a body that was wanted; kept where the rules say so.
    func didEnd(with response: HTTPResponse, _ outcome: DownloadOutcome, _ report: TransferReport) {
        let now = origins.time.wallTime()
        let stored = storedResponse(
            status: response.status.code,
            fields: StoredFields.of(response.headerFields, rules: origins.rules),
            of: response,
            finalTarget: outcome.finalTarget,
            times: (now, now)
        )
        let storability = Storability.decide(
            response: stored.facts,
            request: request.facts,
            hasExplicitKey: request.hasExplicitKey,
            isSelective: request.isSelective,
            rules: origins.rules
        )
        // What stands in for an error is not replaced by it.
        let isKept =
            storability == .storable && request.isCacheable && plan.relay == nil && keep(stored)
        shared.didReceiveHead(
            .unsuccessful(stored, isStored: isKept),
            report: report,
            group: group
        )
    }

    /// Stores a head without a body: what an error says is not kept, only that it was one; and not
    /// in the place of what is pinned.
    private func keep(_ stored: StoredResponse) -> Bool {
        do throws(CacheError) {
            defer { storage.memory.remove(request.key) }
            try storage.disk.store().store(
                UnsafeRawBufferPointer(start: nil, count: 0),
                for: request.key,
                metadata: stored.encoded(),
                class: request.entryClass,
                DiskSuccession(sparesPinned: true)
            )
            return true
        } catch  where error.code == .notStorable {
            return false
        } catch {
            recorder.didFailToStore(request.key, request.target, error)
            return false
        }
    }
}
