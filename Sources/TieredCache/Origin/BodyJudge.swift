import HTTPCaching
import Logging

/// Row 27: decides whether a whole body is what it has to be, for one of its readers or transfers.
///
/// The only place of this decision for stored bodies; the entry remembers it (``BodyDecision``).
struct BodyJudge: Sendable {
    /// What a request learns of a body.
    enum Outcome: Sendable {
        /// The body is right, no digest was promised, or the body has gaps.
        case accepted
        /// The body is not what the request expects; other requests may use it.
        case refused(CacheError)
        /// A part of the body was lost while it was compared.
        case undecided(CacheError)
    }

    let storage: Storage
    let origins: Origins
    let request: CacheRequest

    /// Notes that the request uses a body, so that the expectation of another one does not discard
    /// it.
    func enter(_ entry: DiskEntry) {
        // What a reload brings replaces a body that others may use.
        entry.enter(expecting: request.policy == .reload ? [] : request.expectedDigests)
    }

    /// Whether a body is still to be compared with what the origin promised, or is wrong.
    static func awaitsDecision(_ entry: DiskEntry) -> Bool {
        entry.awaitsDecision { StoredResponse(encoded: $0)?.promisedDigests ?? [] }
    }

    /// Whether the request has to wait for the decision about a body.
    ///
    /// A relay verifies nothing: the recipient of the fields can (RFC 9530 §1).
    func awaitsDecision(_ entry: DiskEntry) -> Bool {
        request.relay == nil && Self.awaitsDecision(entry)
    }

    /// The longest body that a reader of a part of it compares: a film of gigabytes is not read for
    /// a probe of two bytes.
    private static let maximumForPart: Int64 = 8 << 20

    /// Makes the decision about a body, or waits for it; does nothing while the body has gaps.
    ///
    /// A body that is not what the origin promised is quarantined: lookups no longer find it, and
    /// its files are kept aside until the right body has arrived or space is needed. So is one that
    /// is not what its only requester expects. A right one gets its name, if it waits for that.
    ///
    /// - Parameters:
    ///   - entry: the entry of the body.
    ///   - length: the length of the body as far as the caller knows it; nil for that of the entry.
    ///   - comparesExpected: whether the digests that the request expects are compared.
    ///     They are not for a part of a stored body, whose reader begins no long comparison either.
    /// - Returns: the outcome for this request.
    /// - Throws: `.representationChanged` or `.integrityFailed` for a body that is not what the
    ///   origin promised; `.cancelled` if this task was cancelled while another one compared.
    func decide(
        about entry: DiskEntry,
        length: Int64? = nil,
        comparesExpected: Bool = true
    ) async throws(CacheError) -> Outcome {
        let isDue = awaitsDecision(entry)
        let wanted = BodyExpectation(
            promised: isDue ? Self.promise(of: entry) : [],
            expected: comparesExpected ? request.expectedDigests : []
        )
        guard isDue || !wanted.isEmpty else { return .accepted }
        let mayBegin =
            comparesExpected || (length ?? entry.completeLength ?? 0) <= Self.maximumForPart
        while true {
            switch entry.nextStep(for: wanted, length: length, mayBegin: mayBegin) {
            case .nothing:
                return .accepted
            case .fail(let failure):
                throw failure
            case .refuse(let refusal):
                noteRefusal(refusal)
                return .refused(refusal)
            case .wait(let latch):
                guard let outcome = await latch.wait() else { throw .leftTransfer }
                if case .failure(let error) = outcome { return .undecided(error) }
            case .compare(let comparison):
                let length = length ?? entry.completeLength ?? 0
                let outcome = await storage.writers.run {
                    compare(entry, to: length, for: comparison)
                }
                entry.endComparison()
                comparison.latch.complete(with: outcome)
                if case .failure(let error) = outcome { return .undecided(error) }
            }
        }
    }

    /// Lets a finished successor take the name of a pinned entry, unless it is still to be compared
    /// or is not what it has to be.
    func takeName(_ entry: DiskEntry) {
        guard entry.hasFollowedPinned else { return }
        let promised = request.relay == nil ? Self.promise(of: entry) : []
        if entry.permitsName(promised: promised) {
            do throws(CacheError) {
                try entry.takeName()
            } catch {
                recorder.didFailToStore(request.key, target: request.target, error: error)
            }
        }
        // A hit may have promoted the old body meanwhile.
        storage.memory.remove(entry.key)
    }

    private var recorder: Recorder { storage.recorder }

    private static func promise(of entry: DiskEntry) -> [ContentDigest] {
        StoredResponse(encoded: entry.metadata)?.promisedDigests ?? []
    }

    // MARK: Comparing

    /// Compares a body on a thread that may block.
    ///
    /// - Returns: a failure if a part of the body was lost meanwhile; success also where the bytes
    ///   have changed, so that they are compared again.
    private func compare(
        _ entry: DiskEntry,
        to length: Int64,
        for comparison: BodyDecision.Comparison
    ) -> Result<Void, CacheError> {
        do throws(CacheError) {
            // Readers may have read the ends of writers that are not on disk yet.
            try entry.sealFullEnds()
        } catch {
            // Such an end is compared in memory, where its readers read it.
            recorder.didFailToStore(request.key, target: request.target, error: error)
        }
        let version = entry.decisionVersion
        var digester = BodyDigester(entry: entry, length: length, found: comparison.found)
        let wanted = comparison.wanted
        let isRecorded = !wanted.promised.isEmpty && entry.isRecorded(wanted.promised)
        let promise = isRecorded ? .same : digester.compare(with: wanted.promised)
        let expected = promise == .same ? digester.compare(with: wanted.expected) : .same
        guard promise != .unreadable, expected != .unreadable else {
            // Bytes that were written meanwhile may have been read in part.
            if entry.decisionVersion != version { return .success(()) }
            return .failure(lost)
        }
        let outcome: BodyDecision.Outcome
        if case .other(let digest, let found) = promise {
            guard entry.decisionVersion == version else { return .success(()) }
            outcome = .wrong(quarantine(entry, expected: digest, found: found))
        } else if case .other(let digest, let found) = expected {
            guard entry.decisionVersion == version else { return .success(()) }
            outcome = .unexpected(refuse(entry, wanted, expected: digest, found: found))
        } else {
            outcome = .right
        }
        let isCurrent = entry.didCompare(
            with: wanted,
            found: digester.found,
            outcome: outcome,
            version: version
        )
        guard isCurrent else { return .success(()) }
        didEnd(entry, wanted: wanted, outcome: outcome)
        if !isRecorded, !digester.lacksAlgorithm { entry.recordComparison() }
        takeName(entry)
        return .success(())
    }

    private func didEnd(
        _ entry: DiskEntry,
        wanted: BodyExpectation,
        outcome: BodyDecision.Outcome
    ) {
        if case .wrong = outcome { return }
        if !wanted.promised.isEmpty { origins.integrity.withLock { $0.didMatch(request.key) } }
        guard case .right = outcome else { return }
        if !wanted.expected.isEmpty {
            origins.integrity.withLock { $0.didMatch(request.key, expecting: wanted.expected) }
        }
        storage.disk.openStore?.releaseQuarantine(of: entry.key)
    }

    private var lost: CacheError {
        CacheError(
            .representationChanged,
            "a part of \(request.target.redacted) was lost before the whole could be compared "
                + "with its digest; fetch it again"
        )
    }

    // MARK: Mismatches

    /// A body that is not what the origin promised.
    private func quarantine(
        _ entry: DiskEntry,
        expected: ContentDigest,
        found: ContentDigest
    ) -> CacheError {
        let isGone = entry.isSuperseded || storage.quarantine(entry, of: request.key)
        let words = "\(request.target.redacted) has \(found) instead of \(expected)"
        recorder.logger.warning("digest mismatch, body quarantined: \(words)")
        return mismatch(words, expecting: [], isGone: isGone)
    }

    /// A body that is not what the request expects; it is discarded only if no other request has
    /// used it.
    private func refuse(
        _ entry: DiskEntry,
        _ wanted: BodyExpectation,
        expected: ContentDigest,
        found: ContentDigest
    ) -> CacheError {
        var isGone = entry.isSuperseded
        if !isGone, entry.isOnlyFor(wanted.expected) {
            isGone = storage.quarantine(entry, of: request.key)
        }
        let words = "\(request.target.redacted) has \(found) instead of \(expected)"
        recorder.logger.warning("the body is not the expected one: \(words)")
        return mismatch(words, expecting: wanted.expected, isGone: isGone)
    }

    private func mismatch(
        _ words: String,
        expecting expected: [ContentDigest],
        isGone: Bool
    ) -> CacheError {
        let now = origins.time.monotonicTime()
        let decision = origins.integrity.withLock {
            $0.didMismatch(request.key, expecting: expected, isGone: isGone, now: now)
        }
        switch decision {
        case .refetch:
            request.report(.restarted)
            return CacheError(.representationChanged, "\(words); fetch it again")
        case .giveUp:
            return CacheError(
                .integrityFailed,
                "\(words), also when fetched again; the origin or the expectation is wrong"
            )
        }
    }

    /// A request that meets a refused body again has to fetch it past what is stored.
    private func noteRefusal(_ refusal: CacheError) {
        guard refusal.code == .representationChanged else { return }
        let now = origins.time.monotonicTime()
        origins.integrity.withLock {
            $0.didMeetAgain(request.key, expecting: request.expectedDigests, now: now)
        }
    }
}

/// Computes digests of one body, each once.
private struct BodyDigester {
    enum Comparison: Equatable {
        case same
        case other(ContentDigest, found: ContentDigest)
        /// A block is damaged or gone.
        case unreadable
    }

    private enum Computation {
        case digest(ContentDigest)
        /// This system lacks the algorithm.
        case unknown
        case unreadable
    }

    let entry: DiskEntry
    let length: Int64
    private(set) var found: [ContentDigest]
    /// Whether a digest could not be compared, for want of its algorithm.
    private(set) var lacksAlgorithm = false

    init(entry: DiskEntry, length: Int64, found: [ContentDigest]) {
        self.entry = entry
        self.length = length
        self.found = found
    }

    /// Compares with each digest; those of an algorithm that this system lacks are left out.
    mutating func compare(with digests: [ContentDigest]) -> Comparison {
        for digest in digests {
            switch computed(digest.algorithm) {
            case .digest(digest): continue
            case .digest(let other): return .other(digest, found: other)
            case .unknown: lacksAlgorithm = true
            case .unreadable: return .unreadable
            }
        }
        return .same
    }

    private mutating func computed(_ algorithm: ContentDigest.Algorithm) -> Computation {
        if let known = found.first(where: { $0.algorithm == algorithm }) { return .digest(known) }
        let computation = compute(algorithm)
        if case .digest(let digest) = computation { found.append(digest) }
        return computation
    }

    private func compute(_ algorithm: ContentDigest.Algorithm) -> Computation {
        guard let context = DigestContext(algorithm) else { return .unknown }
        let size = 256 << 10
        let buffer = UnsafeMutableRawBufferPointer.allocate(byteCount: size, alignment: 16)
        defer { buffer.deallocate() }
        var position: Int64 = 0
        while position < length {
            let count = min(entry.read(at: position, into: buffer), Int(length - position))
            guard count > 0 else { return .unreadable }
            guard context.update(UnsafeRawBufferPointer(rebasing: buffer[..<count])) else {
                return .unknown
            }
            position += Int64(count)
        }
        return context.finish().map { .digest($0) } ?? .unknown
    }
}
