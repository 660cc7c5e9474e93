import HTTPCaching
import Logging

/// Row 27: decides whether a whole body is what it has to be, for one of its readers or transfers.
///
/// The only place of this decision for stored bodies; the entry remembers it (``BodyDecision``).
struct BodyJudge: Sendable {
    /// What a request learns of a body.
    enum Outcome: Sendable {
        /// The body is right, no digest was promised, or the file cannot decide: it has gaps, or
        /// the disk refuses the rest of it.
        case accepted
        /// The body is not what the request expects; other requests may use it.
        case refused(CacheError)
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

    /// Notes what the head of a new entry promises, which otherwise has to be decoded for it.
    static func note(promise: [ContentDigest], of entry: DiskEntry) {
        _ = entry.awaitsDecision { _ in promise }
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

    /// Waits for a change of a signal after a version, or throws.
    typealias Waiting = @Sendable (ProgressSignal, UInt64) async throws(CacheError) -> Void

    /// Waits until the task is cancelled.
    static let waitForever: Waiting = { (signal, seen) async throws(CacheError) in
        guard !Task.isCancelled else { throw .leftTransfer }
        await signal.wait(after: seen)
    }

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
    ///   - waiting: waits for a comparison, as long as the caller may.
    /// - Returns: the outcome for this request.
    /// - Throws: `.representationChanged` or `.integrityFailed` for a body that is not what the
    ///   origin promised; `.cancelled` if the cache is closed, and what `waiting` throws, while the
    ///   body is compared.
    func decide(
        about entry: DiskEntry,
        length: Int64? = nil,
        comparesExpected: Bool = true,
        waiting: Waiting = Self.waitForever
    ) async throws(CacheError) -> Outcome {
        let isDue = awaitsDecision(entry)
        let wanted = wanted(of: entry, isDue: isDue, comparesExpected: comparesExpected)
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
            case .wait(let comparison):
                guard try await end(of: comparison, waiting) else { return .accepted }
            case .compare(let comparison):
                begin(comparison, of: entry, to: length ?? entry.completeLength ?? 0)
                guard try await end(of: comparison, waiting) else { return .accepted }
            }
        }
    }

    private func wanted(
        of entry: DiskEntry,
        isDue: Bool,
        comparesExpected: Bool = true
    ) -> BodyExpectation {
        BodyExpectation(
            promised: isDue ? Self.promise(of: entry) : [],
            expected: comparesExpected ? request.expectedDigests : []
        )
    }

    /// Whether the present bytes of a body are known to be what it has to be: ``decide`` has
    /// accepted it, and no byte was written since.
    func accepts(_ entry: DiskEntry) -> Bool {
        let isDue = awaitsDecision(entry)
        return !isDue && entry.hasMet(wanted(of: entry, isDue: isDue))
    }

    // MARK: Files

    /// Begins the decision about a whole file, if it is due; it goes on by itself.
    func beginDeciding(about entry: DiskEntry, length: Int64?) {
        let isDue = awaitsDecision(entry)
        let wanted = wanted(of: entry, isDue: isDue)
        guard isDue || !wanted.isEmpty,
            case .compare(let comparison) = entry.nextStep(for: wanted, length: length)
        else { return }
        begin(comparison, of: entry, to: length ?? entry.completeLength ?? 0)
    }

    /// Begins a comparison, which goes on if the request that began it has no more time for it.
    private func begin(
        _ comparison: BodyDecision.Comparison,
        of entry: DiskEntry,
        to length: Int64
    ) {
        Task {
            let outcome = await compare(entry, to: length, for: comparison)
            entry.endComparison()
            comparison.latch.complete(with: outcome)
        }
    }

    /// Waits for the end of a comparison.
    ///
    /// - Returns: whether the file could be compared.
    /// - Throws: `.cancelled` if the cache was closed; what `waiting` throws.
    private func end(
        of comparison: BodyDecision.Comparison,
        _ waiting: Waiting
    ) async throws(CacheError) -> Bool {
        while true {
            let seen = comparison.signal.version
            if let outcome = comparison.latch.outcome { return try outcome.get() }
            try await waiting(comparison.signal, seen)
        }
    }

    /// Lets a finished successor take the name of a pinned entry, unless it is still to be compared
    /// or is not what it has to be.
    func takeName(_ entry: DiskEntry) {
        guard entry.hasFollowedPinned else { return }
        if entry.permitsName(promised: Self.promise(of: entry)) {
            do throws(CacheError) {
                try entry.takeName()
            } catch {
                recorder.didFailToStore(request.key, target: request.target, error: error)
            }
        }
        // A hit may have promoted the old body meanwhile.
        storage.memory.remove(entry.key)
    }

    /// Compares a whole successor that a relay has brought, which verifies nothing for its client:
    /// the name of a pinned body is for all.
    ///
    /// - Parameter entry: the entry; one that is wrong is set aside, and the pinned one stays.
    func decideForName(of entry: DiskEntry) async {
        guard request.relay != nil, entry.isSuccessor else { return }
        var request = request
        request.relay = nil
        (request.reports, request.onNotice) = (nil, nil)
        do throws(CacheError) {
            let judge = BodyJudge(storage: storage, origins: origins, request: request)
            _ = try await judge.decide(about: entry)
        } catch {
            // It was logged, and is no failure of the relay's transfer.
        }
    }

    private var recorder: Recorder { storage.recorder }

    static func promise(of entry: DiskEntry) -> [ContentDigest] {
        StoredResponse(encoded: entry.metadata)?.promisedDigests ?? []
    }

    // MARK: Comparing

    /// Compares a body, on threads that may block.
    ///
    /// - Returns: false if the file is not whole after all; true also where the bytes have changed,
    ///   so that they are compared again.
    private func compare(
        _ entry: DiskEntry,
        to length: Int64,
        for comparison: BodyDecision.Comparison
    ) async -> Result<Bool, CacheError> {
        let wanted = comparison.wanted
        let begun = await storage.writers.run { basis(of: entry, wanted) }
        guard let (version, found, isRecorded) = begun else { return .success(false) }
        var digester = BodyDigester(entry: entry, length: length, storage: storage, found: found)
        switch await digester.compare(with: wanted.promised + wanted.expected) {
        // Bytes that were written meanwhile may have been read in part.
        case .unreadable: return .success(entry.decisionVersion != version)
        case .stopped: return .failure(.leftTransfer)
        case let result:
            let (found, lacking) = (digester.found, digester.lacking)
            await storage.writers.run {
                let mismatch = mismatch(result, wanted)
                // Before its consequences: with the last look whether the bytes are still the same.
                let isCurrent = entry.didCompare(
                    with: wanted,
                    found: found,
                    lacking: lacking,
                    outcome: mismatch?.outcome ?? .right,
                    version: version
                )
                guard isCurrent else { return }
                if let mismatch { draw(mismatch, of: entry) }
                didEnd(entry, wanted: wanted, outcome: mismatch?.outcome ?? .right)
                if !isRecorded { entry.recordComparison() }
                takeName(entry)
            }
            return .success(true)
        }
    }

    /// What a comparison begins with: the number of changes of the bytes, the digests of them that
    /// are known, and whether the record says that they keep the promise; nil if the disk refuses an
    /// end that is in memory.
    private func basis(
        of entry: DiskEntry,
        _ wanted: BodyExpectation
    ) -> (version: UInt64, found: [ContentDigest], isRecorded: Bool)? {
        do throws(CacheError) {
            // Readers may have read the ends of writers that are not on disk yet.
            try entry.sealFullEnds()
        } catch {
            recorder.didFailToStore(request.key, target: request.target, error: error)
            return nil
        }
        let (version, found) = entry.comparisonBasis
        let isRecorded = !wanted.promised.isEmpty && entry.isRecorded(wanted.promised)
        return (version, isRecorded ? found + wanted.promised : found, isRecorded)
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

    // MARK: Mismatches

    /// A body that is not what it has to be.
    private struct Mismatch {
        /// What the request expects; empty for the origin's promise.
        let expected: [ContentDigest]
        let words: String
        let decision: IntegrityLedger.Decision

        var outcome: BodyDecision.Outcome {
            expected.isEmpty ? .wrong(error) : .unexpected(error)
        }

        private var error: CacheError {
            switch decision {
            case .refetch:
                CacheError(.representationChanged, "\(words); fetch it again")
            case .giveUp:
                CacheError(
                    .integrityFailed,
                    "\(words), also when fetched again; the origin or the expectation is wrong"
                )
            }
        }
    }

    /// What a comparison says against a body; nil for nothing.
    private func mismatch(
        _ result: BodyDigester.Comparison,
        _ wanted: BodyExpectation
    ) -> Mismatch? {
        guard case .other(let digest, let found) = result else { return nil }
        let expected = wanted.promised.contains(digest) ? [] : wanted.expected
        let now = origins.time.monotonicTime()
        return Mismatch(
            expected: expected,
            words: "\(request.target.redacted) has \(found) instead of \(digest)",
            decision: origins.integrity.withLock {
                $0.decision(about: request.key, expecting: expected, now: now)
            }
        )
    }

    /// Sets a body aside that is not what the origin promised; one that is not what its request
    /// expects only if no other request has used it.
    private func draw(_ mismatch: Mismatch, of entry: DiskEntry) {
        let isPromise = mismatch.expected.isEmpty
        var isGone = entry.isSuperseded
        if !isGone, isPromise || entry.isOnlyFor(mismatch.expected) {
            isGone = storage.quarantine(entry, of: request.key)
        }
        let what =
            isPromise ? "digest mismatch, body quarantined" : "the body is not the expected one"
        recorder.logger.warning("\(what): \(mismatch.words)")
        let now = origins.time.monotonicTime()
        origins.integrity.withLock {
            _ = $0.didMismatch(
                request.key,
                expecting: mismatch.expected,
                isGone: isGone,
                now: now
            )
        }
        if mismatch.decision == .refetch { request.report(.restarted) }
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

extension StoredResponse {
    /// The digests of the body that the origin promised.
    var promisedDigests: [ContentDigest] {
        // The fields of a part speak of the whole.
        status == 203 || status == 206 ? [] : ContentDigest.promised(in: fields)
    }
}
