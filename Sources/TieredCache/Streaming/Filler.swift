import HTTPCaching

/// Fetches what an entry lacks, for one reader: plans the ranges and joins the flights.
final class Filler: Sendable {
    /// Held runs shorter than this are fetched again rather than asked around: a request costs
    /// more than the bytes.
    private static let worthSkipping: Int64 = 256 << 10
    /// A flight farther away than this is not waited for.
    private static let worthWaiting: Int64 = 8 << 20

    let engine: Engine
    let fill: Fill
    let request: CacheRequest
    let facts: RequestFacts
    let head: StoredResponse

    init(engine: Engine, fill: Fill, request: CacheRequest, head: StoredResponse) {
        self.engine = engine
        self.fill = fill
        self.request = request
        self.head = head
        facts = RequestFacts(method: request.method, fields: request.fields)
    }

    /// Whether a flight has met another representation than the one that `entry` is of.
    func hasOtherGeneration(than entry: DiskEntry) -> Bool {
        fill.generation.map { $0.entry.generation != entry.generation } ?? false
    }

    /// What a flight that cannot store has for a reader.
    enum Passing {
        /// The flight stores what it brings, or has no answer yet.
        case no
        /// The rest of the body, for this reader alone.
        case claimed(PassThroughChannel)
        /// Bytes that others read, or from elsewhere on.
        case forOthers
    }

    /// Claims the channel of a flight that could not store, if it reaches the reader's position.
    func claimChannel(of flight: Subscription, at position: Int64) -> Passing {
        guard let id = flight.flight, case .passing(let head, let channel, _) = fill.answer(of: id)
        else { return .no }
        guard channel.start <= position, head.isSameRepresentation(as: self.head),
            channel.claim()
        else { return .forOthers }
        return .claimed(channel)
    }

    /// Joins the flight that will bring the byte at `position`, or makes one for the gap there.
    ///
    /// - Parameters:
    ///   - entry: what is filled.
    ///   - position: the first missing byte.
    ///   - limit: the end of what the reader wants.
    ///   - isAlone: whether to fetch without sharing.
    ///   - held: what the answer confirms, where it is no longer fresh.
    /// - Returns: the share in the flight.
    func join(
        _ entry: DiskEntry,
        at position: Int64,
        limit: Int64,
        isAlone: Bool = false,
        validating held: HeldResponse? = nil
    ) -> Subscription {
        let range = Self.gap(in: entry, at: position, limit: limit)
        var group = fill.joinableGroup(for: entry)
        if isAlone { group = engine.soleGroup(group) }
        let base = Fill.Generation(head: head, entry: entry)
        var plan = engine.plan(request, range: range)
        plan.generation = Generation(
            validator: head.validator,
            completeLength: entry.completeLength,
            origin: head.finalTarget?.origin
        )
        plan.policy.areRangesUntrusted = head.flags.contains(.withoutRanges)
        let operation = DownloadOperation(
            engine: engine,
            fill: fill,
            group: group,
            request: request,
            facts: facts,
            plan: plan,
            base: base,
            held: held
        )
        return engine.join(operation, at: max(position, range.lowerBound), isFar: Self.worthWaiting)
    }

    /// The bytes to ask for: from the first missing block to the next run that is worth skipping.
    static func gap(in entry: DiskEntry, at position: Int64, limit: Int64) -> Range<Int64> {
        let end = max(position + 1, min(limit, entry.completeLength ?? .max))
        let gaps = entry.heldRanges.gaps(in: position..<end).ranges
        var upper = gaps.first?.upperBound ?? end
        for gap in gaps.dropFirst() where gap.lowerBound - upper < worthSkipping {
            upper = gap.upperBound
        }
        let blockSize = entry.blockSize
        let first = position / blockSize * blockSize
        // Whole blocks, because only they can be held; an open end where the end is not known.
        guard upper < .max - blockSize else { return first..<Int64.max }
        let last = (upper + blockSize - 1) / blockSize * blockSize
        return first..<min(last, entry.completeLength ?? .max)
    }
}

extension StoredResponse {
    /// Whether two heads are of one representation, as far as their validators tell.
    func isSameRepresentation(as other: StoredResponse) -> Bool {
        self == other || (validator != nil && validator == other.validator)
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
