import HTTPCaching
import Logging

// Row 27: a complete body is compared with its expected digests.
extension DownloadOperation {
    /// Verifies a body that this transfer has delivered without storing it.
    func passThroughMismatch(of sink: StoringSink, outcome: DownloadOutcome) -> CacheError? {
        guard case .completed(let length) = outcome.end,
            let (expected, found) = sink.passingDigests?.mismatch(completeLength: length)
        else { return nil }
        let words = "\(request.target.redacted) has \(found) instead of \(expected)"
        recorder.logger.warning("digest mismatch of a body that is not stored: \(words)")
        return CacheError(.integrityFailed, "\(words); its bytes have been delivered")
    }

    /// The digests to compare a body with.
    func expectedDigests(of head: StoredResponse) -> [ContentDigest] {
        request.expectedDigests(of: head)
    }
}

extension CacheRequest {
    /// The digests to compare a body with: those of the request, and those that the origin sends.
    func expectedDigests(of head: StoredResponse) -> [ContentDigest] {
        // A relay verifies nothing: the recipient of the fields can (RFC 9530 §1).
        let isJudged = head.status != 203 && relay == nil
        let promised = isJudged ? ContentDigest.promised(in: head.fields) : []
        return expectedDigests + promised.filter { !expectedDigests.contains($0) }
    }
}
