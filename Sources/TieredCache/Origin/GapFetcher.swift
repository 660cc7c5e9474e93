import HTTPCaching
import HTTPTypes

/// Fetches the missing bytes of an entry for one reader: plans the ranges and joins the transfers.
final class GapFetcher: Sendable {
    /// The minimum length in bytes of a stored run that is not fetched again.
    ///
    /// Another request would cost more than the bytes of a shorter one: at 20 Mbit/s and 100 ms of
    /// latency, as many bytes as a round trip lasts.
    private static let minimumSkippedRun: Int64 = 256 << 10
    /// A reader does not wait for a transfer farther away than this many bytes.
    static let maximumWaitDistance: Int64 = 8 << 20

    let transfers: Transfers
    let shared: SharedTransfers
    let request: CacheRequest
    let head: StoredResponse

    init(transfers: Transfers, shared: SharedTransfers, request: CacheRequest, head: StoredResponse)
    {
        self.transfers = transfers
        self.shared = shared
        self.request = request
        self.head = head
    }

    /// Whether the origin is known to have a representation other than that of `entry`.
    ///
    /// An entry replaced by one with the same strong validator can still be completed.
    func isOutdated(_ entry: DiskEntry) -> Bool {
        guard !shared.isContradicted(entry) else { return true }
        guard entry.isSuperseded, let newest = shared.generation,
            newest.entry.generation != entry.generation
        else { return false }
        return !newest.head.isSameRepresentation(as: head)
    }

    /// Whether the origin sends only the whole body, as far as is known.
    func isSequential(_ entry: DiskEntry) -> Bool {
        head.validator == nil || isWithoutRanges(entry)
    }

    private func isWithoutRanges(_ entry: DiskEntry) -> Bool {
        guard !head.flags.contains(.withoutRanges) else { return true }
        guard let newest = shared.generation, newest.entry.generation == entry.generation else {
            return false
        }
        return newest.head.flags.contains(.withoutRanges)
    }

    /// The use of a transfer for the reader of an entry.
    enum TransferStatus {
        /// The transfer stores into the entry, or has no response yet, or has ended.
        case underWay
        /// The rest of the gap, for this reader alone, with the reason why it is not stored.
        case claimed(WindowBody, CacheError?)
        /// Bytes for other readers, of other positions, or for another entry.
        case forOthers
        /// Bytes that must not be combined with those of the entry (invariant 3).
        case otherRepresentation
        /// An error status without the bytes.
        case unsuccessful(Int)
    }

    /// Checks the bytes that a transfer brings; claims its window if it bypasses the disk.
    func status(
        of transfer: Subscription,
        for entry: DiskEntry,
        at position: Int64
    ) -> TransferStatus {
        guard let context = transfer.context else { return .underWay }
        switch context.outcome {
        case nil, .notModified:
            return .underWay
        case .storing(let generation):
            guard generation.entry.generation == entry.generation else {
                return isSame(generation.head, as: entry) ? .forOthers : .otherRepresentation
            }
            return context.bypass.map { claim($0, at: position) } ?? .underWay
        case .passing(let head, let bypass):
            guard isSame(head, as: entry) else { return .otherRepresentation }
            return claim(bypass, at: position)
        case .unsuccessful(let head, _):
            return .unsuccessful(head.status)
        }
    }

    /// Whether bytes with another head may be combined with those of the entry.
    private func isSame(_ other: StoredResponse, as entry: DiskEntry) -> Bool {
        other.isSameRepresentation(as: head) && !shared.isContradicted(entry)
    }

    /// Keeps a transfer of another representation for a moment: a reader that starts again
    /// continues with its bytes.
    func lingerForRestart(_ transfer: Subscription) {
        guard case .storing? = transfer.context?.outcome else { return }
        shared.linger([transfer], by: transfers.origins.time)
    }

    private func claim(
        _ bypass: SharedTransfers.Bypass,
        at position: Int64
    ) -> TransferStatus {
        guard case .window(let window) = bypass.bytes, window.start <= position,
            position < window.end,
            window.claim()
        else { return .forOthers }
        return .claimed(window, bypass.reason.error(for: request))
    }

    /// Joins the transfer that will bring the byte at `position`, or starts one for the gap there.
    ///
    /// - Parameters:
    ///   - entry: the entry to complete.
    ///   - position: the first missing byte.
    ///   - limit: the end of the bytes that the reader wants.
    ///   - horizon: the end of those that it wants for now.
    ///   - stopsAtOthers: whether a new transfer leaves the rest to one that goes on behind it.
    ///   - isExclusive: whether to start a transfer that no other request can join.
    ///   - stored: the stored response that the transfer validates, if it is no longer fresh.
    /// - Returns: the subscription to the transfer.
    func join(
        _ entry: DiskEntry,
        at position: Int64,
        limit: Int64,
        horizon: Int64 = .max,
        stopsAtOthers: Bool = false,
        isExclusive: Bool = false,
        validating stored: StoredEntry? = nil
    ) -> Subscription {
        let range = Self.gap(in: entry, at: position, limit: limit)
        var group = shared.joinableGroup(for: entry, head: head)
        if isExclusive { group = transfers.exclusiveGroup(group) }
        let base = SharedTransfers.Generation(head: head, entry: entry)
        var plan = transfers.origins.plan(
            request,
            range: range,
            reason: stored == nil ? .partial : .stale
        )
        plan.generation = Generation(
            validator: head.validator,
            completeLength: entry.completeLength,
            target: head.finalTarget,
            promised: head.promisedDigests
        )
        // A missing validator of this body says nothing about other bodies of the same origin.
        if isWithoutRanges(entry) { plan.policy.areRangesUntrusted = true }
        let isSequential = head.validator == nil || plan.policy.areRangesUntrusted
        var operation = DownloadOperation(
            storage: transfers.storage,
            origins: transfers.origins,
            shared: shared,
            group: group,
            request: request,
            plan: plan,
            base: base,
            stored: stored
        )
        operation.firstMissing = position
        operation.isForOneReader = isExclusive
        // Without ranges all bytes arrive in sequence, so a reader waits however far away they are.
        return transfers.join(
            operation,
            at: max(position, range.lowerBound),
            within: isSequential ? nil : Self.maximumWaitDistance,
            horizon: isSequential ? .max : horizon,
            stopsAtOthers: stopsAtOthers
        )
    }

    /// The range to request: from the first missing block to the next stored run worth skipping.
    static func gap(in entry: DiskEntry, at position: Int64, limit: Int64) -> Range<Int64> {
        let end = max(position + 1, min(limit, entry.completeLength ?? .max))
        let gaps = entry.storedRanges.gaps(in: position..<end).ranges
        var upper = gaps.first?.upperBound ?? end
        for gap in gaps.dropFirst() where gap.lowerBound - upper < minimumSkippedRun {
            upper = gap.upperBound
        }
        let blockSize = entry.blockSize
        let first = position / blockSize * blockSize
        // Whole blocks, as only those are stored; open-ended if the length is unknown.
        guard upper < .max - blockSize else { return first..<Int64.max }
        let last = (upper + blockSize - 1) / blockSize * blockSize
        // Another transfer may have found the end meanwhile, before the requested byte.
        return first..<max(first, min(last, entry.completeLength ?? .max))
    }
}

extension StoredResponse {
    /// Whether two heads of one resource carry the same validators, and at least one.
    func hasValidators(of other: StoredResponse) -> Bool {
        facts.hasValidator && isOfSameResource(as: other) && fields[.eTag] == other.fields[.eTag]
            && fields[.lastModified] == other.fields[.lastModified]
    }

    /// Whether two heads agree in all fields that a reader may have seen.
    func isSameShape(as other: StoredResponse) -> Bool {
        status == other.status && fields[.contentRange] == other.fields[.contentRange]
            && fields[.eTag] == other.fields[.eTag]
            && fields[.lastModified] == other.fields[.lastModified]
    }

    /// Whether two heads are of one representation, as far as their validators tell.
    ///
    /// A part is stored as a 200. Other statuses are relayed unchanged: their bodies are content of
    /// those responses, not at the offsets of the representation.
    func isSameRepresentation(as other: StoredResponse) -> Bool {
        self == other
            || (validator != nil && validator == other.validator && status == other.status
                && isOfSameResource(as: other))
    }

    /// The final URL of the response; nil if the stored text is no URL.
    var finalTarget: TargetURI? {
        do throws(TargetURIError) {
            return try TargetURI(origin.finalURL ?? origin.url)
        } catch {
            return nil
        }
    }
}
