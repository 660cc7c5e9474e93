import HTTPCaching
import Logging

// Row 27: a complete body is compared with its expected digests.
extension DownloadOperation {
    /// Verifies a body that this transfer has completed.
    ///
    /// A mismatching body is quarantined: lookups no longer find it, and its files are kept aside
    /// until the right body has arrived or space is needed.
    ///
    /// - Parameter generation: the generation that the transfer has stored into; nil if none.
    /// - Returns: nil if every digest that can be computed matches.
    func integrityFailure(of generation: SharedTransfers.Generation?) -> CacheError? {
        guard let generation, generation.entry.isComplete else { return nil }
        let expected = expectedDigests(of: generation.head)
        guard !expected.isEmpty else { return nil }
        for digest in expected {
            guard let found = Self.digest(digest.algorithm, of: generation.entry) else {
                // A damaged block has become a gap, or this system lacks the algorithm.
                continue
            }
            guard found == digest else {
                return quarantine(generation.entry, expected: digest, found: found)
            }
        }
        origins.integrity.withLock { $0.didMatch(request.key) }
        storage.disk.openStore?.releaseQuarantine(of: generation.entry.key)
        return nil
    }

    /// Verifies a body that this transfer has delivered without storing it.
    func passThroughMismatch(of sink: StoringSink, outcome: DownloadOutcome) -> CacheError? {
        guard case .completed(let length) = outcome.end,
            let (expected, found) = sink.passingDigests?.mismatch(completeLength: length)
        else { return nil }
        let words = "\(request.target.redacted) has \(found) instead of \(expected)"
        recorder.logger.warning("digest mismatch of a body that is not stored: \(words)")
        return CacheError(.integrityFailed, "\(words); its bytes have been delivered")
    }

    /// The digests to compare a body with: those of the request, and those that the origin sends.
    func expectedDigests(of head: StoredResponse) -> [ContentDigest] {
        // A relay verifies nothing: the recipient of the fields can (RFC 9530 §1).
        let isJudged = head.status != 203 && request.relay == nil
        let promised = isJudged ? ContentDigest.promised(in: head.fields) : []
        return request.expectedDigests + promised.filter { !request.expectedDigests.contains($0) }
    }

    private func quarantine(
        _ entry: DiskEntry,
        expected: ContentDigest,
        found: ContentDigest
    ) -> CacheError {
        if !entry.isSuperseded { storage.quarantine(entry, of: request.key) }
        let now = origins.time.monotonicTime()
        let decision = origins.integrity.withLock { $0.didMismatch(request.key, now: now) }
        let words = "\(request.target.redacted) has \(found) instead of \(expected)"
        recorder.logger.warning("digest mismatch, body quarantined: \(words)")
        switch decision {
        case .refetch:
            request.report(.restarted)
            return CacheError(.representationChanged, "\(words); it was set aside, fetch it again")
        case .giveUp:
            return CacheError(
                .integrityFailed,
                "\(words), also when fetched again; the origin or the expectation is wrong"
            )
        }
    }

    private static func digest(
        _ algorithm: ContentDigest.Algorithm,
        of entry: DiskEntry
    ) -> ContentDigest? {
        guard let length = entry.completeLength, let context = DigestContext(algorithm) else {
            return nil
        }
        let size = 256 << 10
        let buffer = UnsafeMutableRawBufferPointer.allocate(byteCount: size, alignment: 16)
        defer { buffer.deallocate() }
        var position: Int64 = 0
        while position < length {
            let count = entry.read(at: position, into: buffer)
            guard count > 0, context.update(UnsafeRawBufferPointer(rebasing: buffer[..<count]))
            else { return nil }
            position += Int64(count)
        }
        return context.finish()
    }
}
