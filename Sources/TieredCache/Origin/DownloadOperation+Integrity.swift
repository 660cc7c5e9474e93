import HTTPCaching
import Logging

// Row 27: a complete body is compared with its expected digests.
extension DownloadOperation {
    /// Verifies a body that this transfer has delivered without storing it.
    ///
    /// - Returns: what was found; nil for a body that was stored, or not compared.
    func passedOutcome(
        of sink: StoringSink,
        outcome: DownloadOutcome
    ) -> BodyDecision.Outcome? {
        guard case .completed(let length) = outcome.end, sink.passingDigests != nil else {
            return nil
        }
        if let outcome = sink.comparePassing(to: length) { return outcome }
        // The bytes are served all the same (invariant 9).
        recorder.logger.warning(
            "the disk lacks bytes of \(request.target.redacted), which was not compared"
        )
        return nil
    }

    /// Compares a body that bypassed the disk.
    ///
    /// - Parameters:
    ///   - digests: those of all its bytes.
    ///   - length: its length; nil if it ends with the last byte received.
    ///   - head: its head, with what the origin promised.
    /// - Returns: what was found.
    func outcome(
        ofPassing digests: PassingDigests,
        to length: Int64?,
        head: StoredResponse
    ) -> BodyDecision.Outcome {
        guard let (expected, found) = digests.mismatch(completeLength: length) else {
            origins.integrity.withLock { integrity in
                integrity.didMatch(request.key)
                integrity.didMatch(request.key, expecting: request.expectedDigests)
            }
            return .right
        }
        let isPromise = head.promisedDigests.contains(expected)
        let words = "\(request.target.redacted) has \(found) instead of \(expected)"
        recorder.logger.warning("digest mismatch of a body that is not stored: \(words)")
        let error =
            asksOwnerAgain(expecting: isPromise ? [] : request.expectedDigests)
            ? CacheError(.representationChanged, "\(words); fetch it again")
            : CacheError(.integrityFailed, "\(words); its bytes have been delivered")
        return isPromise ? .wrong(error) : .unexpected(error)
    }

    /// Whether a guest fetches a wrong body once more, past what the owner has stored of it.
    private func asksOwnerAgain(expecting expected: [ContentDigest]) -> Bool {
        guard storage.storageError?.code == .notOwner else { return false }
        let now = origins.time.monotonicTime()
        return origins.integrity.withLock {
            $0.didMismatch(request.key, expecting: expected, isGone: false, now: now) == .refetch
        }
    }

    /// The digests to compare a body with: those that the origin promises, then those of the
    /// request.
    func expectedDigests(of head: StoredResponse) -> [ContentDigest] {
        // A relay verifies nothing: the recipient of the fields can (RFC 9530 §1).
        let promised = request.relay == nil ? head.promisedDigests : []
        return promised + request.expectedDigests.filter { !promised.contains($0) }
    }

    var judge: BodyJudge { BodyJudge(storage: storage, origins: origins, request: request) }
}

extension StoredResponse {
    /// The digests of the body that the origin promised.
    var promisedDigests: [ContentDigest] {
        // A part that is stored by itself has fields that speak of the whole.
        status == 203 || status == 206 ? [] : ContentDigest.promised(in: fields)
    }
}
