import Synchronization

// The decision whether the body is what it has to be: its entry owns it, so that all leases find
// the same one.
extension DiskEntry {
    /// Whether the body is still to be compared with what its metadata promise, or is wrong.
    ///
    /// - Parameter promise: the digests that metadata promise.
    /// - Returns: true as well once the promise was broken.
    func awaitsDecision(promise: ([UInt8]) -> [ContentDigest]) -> Bool {
        if isSettled.load(ordering: .acquiring) { return false }
        let metadata = metadata
        let promised = promise(metadata)
        return state.withLock { state in
            let isDue = state.decision.note(promised: promised)
            if !isDue, state.metadata == metadata { isSettled.store(true, ordering: .releasing) }
            return isDue
        }
    }

    /// What the metadata promise, as ``awaitsDecision(promise:)`` has noted it.
    var promise: [ContentDigest] { state.withLock { $0.decision.promised } }

    /// Notes that a request uses the body.
    ///
    /// Takes no lock for a request that expects nothing, but for the first one.
    func enter(expecting expected: [ContentDigest]) {
        if expected.isEmpty, isShared.load(ordering: .relaxed) { return }
        state.withLock { state in
            state.decision.enter(expecting: expected)
            if expected.isEmpty { isShared.store(true, ordering: .relaxed) }
        }
    }

    /// Whether all requests so far expect these digests, and the body was made for them.
    func isOnlyFor(_ expected: [ContentDigest]) -> Bool {
        !expected.isEmpty && state.withLock { $0.decision.requester == expected }
    }

    /// What a request has to do for the decision.
    ///
    /// - Parameters:
    ///   - wanted: what the body has to be.
    ///   - length: the length of the body where the entry does not know it.
    ///   - mayBegin: whether the caller would compare.
    /// - Returns: the step.
    func nextStep(
        for wanted: BodyExpectation,
        length: Int64?,
        mayBegin: Bool = true
    ) -> BodyDecision.Step {
        let isWhole = isWhole(to: length)
        return state.withLock {
            $0.decision.nextStep(for: wanted, isWhole: isWhole, mayBegin: mayBegin)
        }
    }

    /// The number of changes of the bytes, for the end of a comparison.
    var decisionVersion: UInt64 { state.withLock { $0.decision.version } }

    /// The same for its beginning, with the digests of just these bytes that are known.
    var comparisonBasis: (version: UInt64, found: [ContentDigest]) {
        state.withLock { ($0.decision.version, $0.decision.found) }
    }

    /// Records a comparison, unless bytes were written since it began; see
    /// ``BodyDecision/didCompare(with:found:lacking:outcome:)``.
    ///
    /// - Returns: whether it was recorded.
    func didCompare(
        with wanted: BodyExpectation,
        found: [ContentDigest],
        lacking: Set<ContentDigest.Algorithm> = [],
        outcome: BodyDecision.Outcome,
        version: UInt64
    ) -> Bool {
        state.withLock { state in
            guard state.decision.version == version else { return false }
            state.decision.didCompare(
                with: wanted,
                found: found,
                lacking: lacking,
                outcome: outcome
            )
            return true
        }
    }

    func endComparison() { state.withLock { $0.decision.endComparison() } }

    /// Whether the present bytes are known to be what a request wants.
    func hasMet(_ wanted: BodyExpectation) -> Bool {
        state.withLock { $0.decision.hasMet(wanted) }
    }

    /// Whether nothing forbids that the body takes the name of a pinned one.
    func permitsName(promised: [ContentDigest]) -> Bool {
        state.withLock { $0.decision.permitsName(promised: promised) }
    }

    /// Whether every byte up to `length` is readable, on disk or in the unsealed ends of writers.
    private func isWhole(to length: Int64?) -> Bool {
        guard completeLength == nil, let length else { return isWhole }
        return storedRanges.gaps(in: 0..<length).ranges.isEmpty
    }

    // MARK: On disk

    /// Whether these bytes are known to be what was promised: this process has found it, or the
    /// record says so; reads the disk.
    func isRecorded(_ promised: [ContentDigest]) -> Bool {
        let table = state.withLock { state in
            // What this process has written says nothing about what was compared before.
            state.isPublished && !state.isDetached && state.decision.version == 0
                ? state.table : nil
        }
        guard let store, let word = table?.comparisonWord(promised) else { return false }
        if store.compared.withLock({ $0.contains(word, of: name) }) { return true }
        var recorded: UInt64?
        store.attempt { () throws(FileSystemError) in
            recorded = try store.comparisonWord(of: self)
        }
        return recorded == word
    }

    /// Records on disk that the body was found to be what was promised.
    ///
    /// Best effort: without it the body is compared again after it was opened again.
    func recordComparison() {
        guard !state.withLock({ $0.decision.proven.isEmpty }) else { return }
        store?.recordComparison(of: self)
    }
}

extension DiskEntryState {
    /// Makes a change after which the metadata may promise something else.
    ///
    /// With the state's lock, so that no look at the decision comes between.
    mutating func change(of entry: DiskEntry, _ change: (inout DiskEntryState) -> Void) {
        change(&self)
        entry.isSettled.store(false, ordering: .releasing)
    }

    /// Notes the bytes of a writer that has ended before they were a block.
    mutating func didLose(_ tail: PartialBlock, of entry: DiskEntry) {
        // From now on readers find what is stored there, which may be something else.
        if table.isStored(BlockTable.block(at: tail.range.lowerBound)) {
            didChangeBytes(of: entry)
        }
    }

    /// Notes bytes that were written.
    mutating func didChangeBytes(of entry: DiskEntry) {
        if !decision.isBlank { entry.isSettled.store(false, ordering: .releasing) }
        decision.didChangeBytes()
    }
}

extension BlockTable {
    /// The word that says in a record that a body was found to be what was promised; nil for a body
    /// with gaps.
    ///
    /// It is made of the checksums and the promise, so that it says nothing about other bytes or
    /// another promise. Never 0.
    func comparisonWord(_ promised: [ContentDigest]) -> UInt64? {
        guard isComplete, !promised.isEmpty else { return nil }
        var bytes: [UInt8] = []
        bytes.reserveCapacity(8 * checksums.count + 80 * promised.count)
        for checksum in checksums {
            withUnsafeBytes(of: checksum.littleEndian) { bytes.append(contentsOf: $0) }
        }
        for digest in promised { bytes.append(contentsOf: digest.description.utf8) }
        return bytes.withUnsafeBytes { max(checksumOf($0), 1) }
    }
}
