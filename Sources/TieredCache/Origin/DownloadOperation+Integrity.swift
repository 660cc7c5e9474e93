import HTTPCaching
import Logging

// Row 27: what is complete is compared with the digests that were promised.
extension DownloadOperation {
    /// Checks a body that this transfer has completed.
    ///
    /// A body that does not match is quarantined: nobody finds it any more, and its files are set
    /// aside until the right body has come or room is needed.
    ///
    /// - Parameter generation: what the transfer has stored into; nil where it stored nothing.
    /// - Returns: nil if there is nothing to object to.
    func integrityFailure(of generation: SharedTransfers.Generation?) -> CacheError? {
        guard let generation, generation.entry.isComplete else { return nil }
        let expected = expectedDigests(of: generation.head)
        guard !expected.isEmpty else { return nil }
        for digest in expected {
            guard let found = Self.digest(digest.algorithm, of: generation.entry) else {
                // Damaged blocks are gaps by now, or this machine has no such algorithm.
                continue
            }
            guard found == digest else { return quarantine(generation.entry, digest, found) }
        }
        origins.integrity.withLock { $0.didMatch(request.key) }
        storage.disk.openStore?.releaseQuarantine(of: generation.entry.key)
        return nil
    }

    /// Checks a body that this transfer has brought past the disk.
    func mismatchInPassing(_ sink: StoringSink, _ outcome: DownloadOutcome) -> CacheError? {
        guard case .completed(let length) = outcome.end,
            let (expected, found) = sink.passingDigests?.mismatch(completeLength: length)
        else { return nil }
        let words = "\(request.target.redacted) has \(found) instead of \(expected)"
        recorder.logger.warning("a body that was not stored: \(words)")
        return CacheError(.integrityFailed, "\(words); its bytes have been delivered")
    }

    /// What a body is to be compared with: what the caller knows, and what the origin says.
    func expectedDigests(of head: StoredResponse) -> [ContentDigest] {
        // A proxy adds and judges nothing: who gets the fields can check them (RFC 9530 §1).
        let isJudged = head.status != 203 && request.relay == nil
        let promised = isJudged ? ContentDigest.promised(in: head.fields) : []
        return request.expectedDigests + promised.filter { !request.expectedDigests.contains($0) }
    }

    private func quarantine(
        _ entry: DiskEntry,
        _ expected: ContentDigest,
        _ found: ContentDigest
    ) -> CacheError {
        if !entry.isSuperseded { storage.quarantine(entry, of: request.key) }
        let now = origins.time.monotonicTime()
        let decision = origins.integrity.withLock { $0.didMismatch(request.key, now: now) }
        let words = "\(request.target.redacted) has \(found) instead of \(expected)"
        recorder.logger.warning("a body was set aside: \(words)")
        switch decision {
        case .refetch:
            request.onNotice?(.restarted)
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
