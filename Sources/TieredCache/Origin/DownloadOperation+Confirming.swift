import HTTPCaching
import HTTPTypes

// What the origin confirmed: a 304, or a 206 that goes with what is stored.
extension DownloadOperation {
    /// A part's head freshened by the 206 that goes with it.
    func freshened(
        _ base: SharedTransfers.Generation,
        by head: DownloadHead,
        completeLength: Int64?
    ) -> StoredResponse {
        let isNews = completeLength != nil && base.entry.completeLength == nil
        guard stored != nil || isNews else { return base.head }
        if stored != nil { recorder.didRevalidate(request.key, isUnchanged: true) }
        let freshened = base.head.freshened(
            by: head.response.headerFields,
            requestTime: head.requestTime,
            responseTime: head.responseTime,
            isPersonal: hasCookie,
            rules: origins.rules
        )
        update(base.entry, freshened, completeLength: completeLength)
        return freshened
    }

    /// The head of an entry whose origin has sent all of it for a part.
    func noteWithoutRanges(
        _ head: StoredResponse,
        _ response: HTTPResponse,
        _ entry: DiskEntry
    ) -> StoredResponse {
        guard response.headerFields[.acceptRanges]?.lowercased() != "bytes",
            !head.flags.contains(.withoutRanges)
        else { return head }
        var head = head
        head.flags.insert(.withoutRanges)
        update(entry, head)
        return head
    }

    /// A 304: freshens what is stored in either tier.
    func didConfirm(_ head: DownloadHead, _ report: TransferReport) {
        let fields = head.response.headerFields
        let known = stored ?? variants.first { fields[.eTag] == $0.head.fields[.eTag] }
        guard let stored = known, Freshening.identifies(fields, storedFields: stored.head.fields),
            isAbout(stored.head, head)
        else {
            recorder.didRevalidate(request.key, isUnchanged: false)
            shared.didReceiveHead(.notModified(nil), report: report, group: group)
            return
        }
        let freshened = stored.head.freshened(
            by: fields,
            requestTime: head.requestTime,
            responseTime: head.responseTime,
            isPersonal: hasCookie,
            rules: origins.rules
        )
        recorder.didRevalidate(request.key, isUnchanged: true)
        switch stored.body {
        case .disk(let entry):
            update(entry, freshened)
        case .memory(let entry):
            storage.memory.insert(
                MemoryEntry(
                    head: freshened,
                    body: entry.body,
                    generation: entry.generation
                ),
                forKey: stored.key
            )
            updateDisk(stored.key, from: stored.head, to: freshened)
        }
        let confirmation = SharedTransfers.Confirmation(asked: stored.head, freshened: freshened)
        shared.didReceiveHead(.notModified(confirmation), report: report, group: group)
    }

    /// Whether an answer without a body is about the resource that a stored one came from.
    ///
    /// A redirect may lead to another resource by now, whose tags tell apart other representations.
    /// Under a key of its own the application says that two URLs are of one thing; it says nothing
    /// of where they redirect to.
    private func isAbout(_ stored: StoredResponse, _ head: DownloadHead) -> Bool {
        guard let known = stored.finalTarget else { return false }
        if head.finalTarget.relation(to: known) != .other { return true }
        return request.hasExplicitKey && stored.origin.finalURL == nil
            && head.finalTarget == request.target
    }

    /// Freshens the disk's copy of a response that the memory tier answered with.
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
            update(entry, new)
        } catch {
            recorder.didFailToStore(request.key, request.target, error)
        }
    }

    func update(
        _ entry: DiskEntry,
        _ head: StoredResponse,
        completeLength: Int64? = nil
    ) {
        do throws(CacheError) {
            try entry.updateMetadata(head.encoded(), completeLength: completeLength)
        } catch {
            recorder.didFailToStore(request.key, request.target, error)
        }
    }
}
