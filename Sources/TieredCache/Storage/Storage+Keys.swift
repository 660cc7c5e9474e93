import HTTPCaching
import HTTPTypes

// Several responses for one key, which `Vary` tells apart (RFC 9111 §4.1).
//
// The first one is stored under the key itself, further ones under keys made from it. There is no
// list of them that could be lost or be wrong: they are looked for where the first one turns out to
// have been selected by other fields. All vary by the same fields, so at most one is selected by a
// request: a response that names others, or none, takes the place of all of them.
extension Storage {
    /// The key under which to store a response: that of the response with the same selecting
    /// fields, else a free one, else that of the oldest.
    ///
    /// Reads the disk: call it where that may block.
    func key(for stored: StoredResponse, of primary: CacheKey) -> CacheKey {
        guard let first = storedHead(under: primary), first.isVariant else { return primary }
        guard stored.selectingNames == first.selectingNames else {
            for key in primary.variants { forget(key, because: .replaced, sparesPinned: true) }
            return primary
        }
        guard first.variantFields != stored.variantFields else { return primary }
        var free: CacheKey?
        var oldest = (key: primary, time: first.responseTime)
        for key in primary.variants {
            guard let head = storedHead(under: key) else {
                free = free ?? key
                continue
            }
            if head.variantFields == stored.variantFields { return key }
            if head.responseTime < oldest.time { oldest = (key, head.responseTime) }
        }
        return free ?? oldest.key
    }

    /// The cause of the removal if the response stored under a key is replaced now.
    ///
    /// Reads the disk: call it where that may block.
    func removal(of key: CacheKey) -> DiskRemoval.Cause {
        guard let head = storedHead(under: key) else { return .replaced }
        let age = CurrentAge.of(head.facts, at: time.wallTime())
        let lifetime = FreshnessLifetime(of: head.facts, rules: rules).duration
        return age < lifetime ? .replaced : .expired
    }

    func storedHead(under key: CacheKey) -> StoredResponse? {
        do throws(CacheError) {
            guard let store = disk.openStore else { return nil }
            // A key that is known to be absent, as at nearly every miss, needs no lookup.
            if case .ready(nil) = store.entryWithoutBlocking(for: key, isUse: false) { return nil }
            return try store.entry(for: key, isUse: false)
                .flatMap { StoredResponse(encoded: $0.metadata) }
        } catch {
            recorder.didFailToLookUp(key, error: error)
            return nil
        }
    }
}

extension StoredResponse {
    /// Whether other request fields may select another response beside it.
    fileprivate var isVariant: Bool {
        guard let first = variantFields.first else { return false }
        return first.name != "*"
    }

    /// The fields that select, in the order in which they are kept: by name.
    fileprivate var selectingNames: [String] { variantFields.map(\.name) }

    /// The selecting fields, and `Origin` where pages get another response, see ``isForPages``.
    fileprivate var variantFields: [SelectingField] {
        guard !isForPages, !selectingFields.contains(where: { $0.name == "origin" }) else {
            return selectingFields
        }
        return (selectingFields + [SelectingField(name: "origin", digest: nil)])
            .sorted { $0.name < $1.name }
    }
}
