import HTTPCaching
import HTTPTypes

/// Fetches what an entry lacks, for one reader: plans the ranges and joins the transfers.
final class GapFetcher: Sendable {
    /// Stored runs shorter than this are fetched again rather than asked around: a request costs
    /// more than the bytes.
    private static let worthSkipping: Int64 = 256 << 10
    /// A transfer farther away than this is not waited for.
    static let worthWaiting: Int64 = 8 << 20

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

    /// Whether a transfer that completes the body compares it with a digest before it ends.
    var awaitsDecision: Bool {
        guard request.expectedDigests.isEmpty else { return true }
        return request.relay == nil && !ContentDigest.promised(in: head.fields).isEmpty
    }

    /// Whether the origin is known to have another representation than the one of `entry`.
    ///
    /// An entry that was replaced by one with the same strong validator can still be filled.
    func isOutdated(_ entry: DiskEntry) -> Bool {
        guard !shared.isContradicted(entry) else { return true }
        guard entry.isSuperseded, let newest = shared.generation,
            newest.entry.generation != entry.generation
        else { return false }
        return !newest.head.isSameRepresentation(as: head)
    }

    /// Whether the origin sends the body only as a whole, as far as that is known by now.
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

    /// What a transfer has for a reader of an entry.
    enum TransferStatus {
        /// The transfer stores into the entry, or has no answer yet, or has ended.
        case underWay
        /// The rest of the gap, for this reader alone, and why it is not stored.
        case claimed(PassThroughChannel, CacheError?)
        /// Bytes that others read, or from elsewhere on, or for another file.
        case forOthers
        /// Bytes that must not be joined to those of the entry (invariant 3).
        case otherRepresentation
        /// A status without the bytes.
        case unsuccessful(Int)
    }

    /// Looks what a transfer brings; claims its channel if it goes past the disk.
    func status(of transfer: Subscription, _ entry: DiskEntry, at position: Int64) -> TransferStatus
    {
        guard let report = transfer.report else { return .underWay }
        switch report.answer {
        case nil, .notModified:
            return .underWay
        case .storing(let generation):
            guard generation.entry.generation == entry.generation else {
                return isSame(generation.head, entry) ? .forOthers : .otherRepresentation
            }
            return report.bypass.map { claim($0.channel, $0.reason, at: position) }
                ?? .underWay
        case .passing(let head, let channel, let reason):
            guard isSame(head, entry) else { return .otherRepresentation }
            return claim(channel, reason, at: position)
        case .unsuccessful(let head, _):
            return .unsuccessful(head.status)
        }
    }

    /// Whether what comes with another head may be joined to what the entry holds.
    private func isSame(_ other: StoredResponse, _ entry: DiskEntry) -> Bool {
        other.isSameRepresentation(as: head) && !shared.isContradicted(entry)
    }

    /// Keeps a transfer that brings another representation for a moment: a reader that starts again
    /// goes on with what it has brought.
    func handOver(_ transfer: Subscription) {
        guard case .storing(let newest)? = transfer.report?.answer else { return }
        Lingering.begin([transfer], of: newest.entry, shared, transfers.origins.time)
    }

    private func claim(
        _ channel: PassThroughChannel,
        _ reason: NotStored,
        at position: Int64
    ) -> TransferStatus {
        guard channel.start <= position, position < channel.end, channel.claim() else {
            return .forOthers
        }
        return .claimed(channel, reason.error(for: request))
    }

    /// Joins the transfer that will bring the byte at `position`, or makes one for the gap there.
    ///
    /// - Parameters:
    ///   - entry: what is filled.
    ///   - position: the first missing byte.
    ///   - limit: the end of what the reader wants.
    ///   - isAlone: whether to fetch without sharing.
    ///   - stored: what the answer confirms, where it is no longer fresh.
    /// - Returns: the share in the transfer.
    func join(
        _ entry: DiskEntry,
        at position: Int64,
        limit: Int64,
        isAlone: Bool = false,
        validating stored: StoredEntry? = nil
    ) -> Subscription {
        let range = Self.gap(in: entry, at: position, limit: limit)
        var group = shared.joinableGroup(for: entry)
        if isAlone { group = transfers.soleGroup(group) }
        let base = SharedTransfers.Generation(head: head, entry: entry)
        var plan = transfers.origins.plan(request, range: range)
        plan.generation = Generation(
            validator: head.validator,
            completeLength: entry.completeLength,
            target: head.finalTarget
        )
        // That nothing can be joined to this body says nothing of others of the same origin.
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
        operation.isForOneReader = isAlone
        // Without ranges everything comes in sequence, and is waited for however far it is.
        return transfers.join(
            operation,
            at: max(position, range.lowerBound),
            within: isSequential ? nil : Self.worthWaiting
        )
    }

    /// The bytes to ask for: from the first missing block to the next run that is worth skipping.
    static func gap(in entry: DiskEntry, at position: Int64, limit: Int64) -> Range<Int64> {
        let end = max(position + 1, min(limit, entry.completeLength ?? .max))
        let gaps = entry.storedRanges.gaps(in: position..<end).ranges
        var upper = gaps.first?.upperBound ?? end
        for gap in gaps.dropFirst() where gap.lowerBound - upper < worthSkipping {
            upper = gap.upperBound
        }
        let blockSize = entry.blockSize
        let first = position / blockSize * blockSize
        // Whole blocks, because only they can be stored; an open end where the end is not known.
        guard upper < .max - blockSize else { return first..<Int64.max }
        let last = (upper + blockSize - 1) / blockSize * blockSize
        // Another transfer may have found the end meanwhile, before the byte that was asked for.
        return first..<max(first, min(last, entry.completeLength ?? .max))
    }
}

extension StoredResponse {
    /// Whether two heads of one resource carry the same validators, and at least one.
    func hasValidators(of other: StoredResponse) -> Bool {
        facts.hasValidator && isOfSameResource(as: other) && fields[.eTag] == other.fields[.eTag]
            && fields[.lastModified] == other.fields[.lastModified]
    }

    /// Whether nothing that a reader may know tells two heads apart.
    func isSameShape(as other: StoredResponse) -> Bool {
        status == other.status && fields[.contentRange] == other.fields[.contentRange]
            && fields[.eTag] == other.fields[.eTag]
            && fields[.lastModified] == other.fields[.lastModified]
    }

    /// Whether two heads are of one representation, as far as their validators tell.
    ///
    /// A part is stored as a 200. What has another status was relayed as it came: its bytes are
    /// content of that answer and not at the offsets of the representation.
    func isSameRepresentation(as other: StoredResponse) -> Bool {
        self == other
            || (validator != nil && validator == other.validator && status == other.status
                && isOfSameResource(as: other))
    }

    /// The URL that answered in the end; nil if what was stored is no URL.
    var finalTarget: TargetURI? {
        do throws(TargetURIError) {
            return try TargetURI(origin.finalURL ?? origin.url)
        } catch {
            return nil
        }
    }
}
