import HTTPCaching
import HTTPTypes

// Error responses.
extension DownloadOperation {
    /// Handles a final status without a wanted body; stores the status if the rules allow it.
    func didEnd(
        with response: HTTPResponse,
        outcome: DownloadOutcome,
        context: TransferContext
    ) {
        let now = origins.time.wallTime()
        let stored = storedResponse(
            status: response.status.code,
            fields: StoredFields.of(response.headerFields, rules: origins.rules),
            of: response,
            finalTarget: outcome.finalTarget,
            hasCookies: request.fields.contains(.cookie),
            times: (now, now)
        )
        let storability = Storability.decide(
            response: stored.facts,
            request: request.facts,
            hasExplicitKey: request.hasExplicitKey,
            isSelective: request.isSelective,
            rules: origins.rules
        )
        // A response that may be served instead of the error is not replaced by it.
        let isKept =
            storability == .storable && request.isCacheable && plan.relay == nil
            && !request.excludes(outcome.finalTarget) && keep(stored, context: context)
        shared.didReceiveHead(
            .unsuccessful(stored, isStored: isKept),
            of: context,
            group: group
        )
    }

    /// Stores a head with an empty body, as only the status of an error is of use.
    ///
    /// A pinned entry is not replaced; an abandoned transfer stores nothing.
    private func keep(_ stored: StoredResponse, context: TransferContext) -> Bool {
        do throws(CacheError) {
            // Last, so that no lookup promotes the old body again.
            defer { storage.memory.remove(request.key) }
            try storage.disk.store().store(
                UnsafeRawBufferPointer(start: nil, count: 0),
                for: request.key,
                metadata: stored.encoded(),
                class: request.entryClass,
                succession: DiskSuccession(
                    sparesPinned: true,
                    isWanted: isEntryWanted(in: context)
                )
            )
            return true
        } catch  where error.code == .notStorable || error.code == .cancelled {
            return false
        } catch {
            recorder.didFailToStore(request.key, target: request.target, error: error)
            return false
        }
    }
}
