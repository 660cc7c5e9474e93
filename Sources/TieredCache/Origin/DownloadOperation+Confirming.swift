import HTTPCaching
import HTTPTypes

// Confirmations by the origin: a 304, or a 206 that combines with the stored response.
extension DownloadOperation {
    /// The head of an incomplete response, freshened by the 206 that combines with it.
    func freshened(
        _ base: SharedTransfers.Generation,
        by head: DownloadHead,
        completeLength: Int64?
    ) -> StoredResponse {
        let isNews = completeLength != nil && base.entry.completeLength == nil
        guard stored != nil || isNews else { return base.head }
        if stored != nil { recorder.didRevalidate(request.key, isUnchanged: true) }
        let freshened = base.head.freshened(by: answer(head), rules: origins.rules)
        update(base.entry, head: freshened, completeLength: completeLength)
        return freshened
    }

    private func answer(_ head: DownloadHead) -> StoredResponse {
        storedResponse(
            status: head.response.status.code,
            fields: head.response.headerFields,
            of: head.response,
            finalTarget: head.finalTarget,
            hasCookies: head.hasCookies,
            times: (head.requestTime, head.responseTime)
        )
    }

    /// Marks the entry's head if the origin has answered a range request with the whole body.
    func markWithoutRanges(
        _ head: StoredResponse,
        response: HTTPResponse,
        entry: DiskEntry
    ) -> StoredResponse {
        guard response.headerFields[.acceptRanges]?.lowercased() != "bytes",
            !head.flags.contains(.withoutRanges)
        else { return head }
        var head = head
        head.flags.insert(.withoutRanges)
        update(entry, head: head)
        return head
    }

    /// Handles a 304: freshens the stored response in either tier.
    func didConfirm(_ head: DownloadHead, of context: TransferContext) {
        let fields = head.response.headerFields
        // RFC 9111 §4.3.4: the validator of the 304 says which of several is confirmed.
        let known = stored ?? variants.first { fields[.eTag] == $0.head.fields[.eTag] }
        guard let stored = known, let freshened = freshened(stored, by: head) else {
            recorder.didRevalidate(request.key, isUnchanged: false)
            shared.didReceiveHead(.notModified(nil), of: context, group: group)
            return
        }
        recorder.didRevalidate(request.key, isUnchanged: true)
        switch stored.body {
        case .disk(let entry):
            update(entry, head: freshened)
        case .memory(let entry):
            storage.memory.replace(
                entry,
                by: MemoryEntry(
                    head: freshened,
                    body: entry.body,
                    generation: entry.generation
                ),
                forKey: stored.key
            )
            updateDisk(stored.key, from: stored.head, to: freshened)
        }
        let confirmation = SharedTransfers.Confirmation(asked: stored.head, freshened: freshened)
        shared.didReceiveHead(.notModified(confirmation), of: context, group: group)
    }

    /// The head of a stored response, freshened by a 304; nil if the 304 is about another one, or
    /// promises a body that is not the stored one.
    private func freshened(_ stored: StoredEntry, by head: DownloadHead) -> StoredResponse? {
        let fields = head.response.headerFields
        guard Freshening.identifies(fields, storedFields: stored.head.fields),
            isAbout(stored.head, response: head)
        else { return nil }
        let freshened = stored.head.freshened(by: answer(head), rules: origins.rules)
        let promised = freshened.promisedDigests
        guard request.relay == nil, promised != stored.head.promisedDigests else {
            return freshened
        }
        // A new promise about a body on disk is kept before its next reader ends.
        if case .memory(let entry) = stored.body, !entry.hasDigests(promised) { return nil }
        return stored.head.promisedDigests.contradicts(promised) ? nil : freshened
    }

    /// Whether a response without a body concerns the resource of a stored one.
    ///
    /// A redirect may lead to another resource by now, whose tags identify other representations.
    /// An explicit key says that two URLs identify one resource; it says nothing about the targets
    /// of their redirects.
    private func isAbout(_ stored: StoredResponse, response head: DownloadHead) -> Bool {
        guard let known = stored.finalTarget else { return false }
        if head.finalTarget.relation(to: known) != .other { return true }
        return request.hasExplicitKey && stored.origin.finalURL == nil
            && head.finalTarget == request.target
    }

    /// Freshens the disk's copy of a response that was served from memory.
    private func updateDisk(
        _ key: CacheKey,
        from old: StoredResponse,
        to new: StoredResponse
    ) {
        guard let store = storage.disk.openStore else { return }
        do throws(CacheError) {
            guard let entry = try store.entry(for: key, isUse: false),
                let stored = StoredResponse(encoded: entry.metadata),
                stored.hasValidators(of: old)
            else { return }
            update(entry, head: new)
        } catch {
            recorder.didFailToStore(request.key, target: request.target, error: error)
        }
    }

    func update(
        _ entry: DiskEntry,
        head: StoredResponse,
        completeLength: Int64? = nil
    ) {
        do throws(CacheError) {
            try entry.updateMetadata(head.encoded(), completeLength: completeLength)
        } catch {
            recorder.didFailToStore(request.key, target: request.target, error: error)
        }
    }
}
