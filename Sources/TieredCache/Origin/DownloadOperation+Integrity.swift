import HTTPCaching
import Logging

// Row 27: a complete body is compared with its expected digests.
extension DownloadOperation {
    /// Verifies a body that this transfer has delivered without storing it.
    func passThroughMismatch(
        of sink: StoringSink,
        outcome: DownloadOutcome
    )
        -> PassThroughMismatch?
    {
        guard case .completed(let length) = outcome.end, let digests = sink.passingDigests else {
            return nil
        }
        guard digests.isWhole(to: length) else {
            // The bytes are served all the same (invariant 9).
            recorder.logger.warning(
                "the disk lacks bytes of \(request.target.redacted), which was not compared"
            )
            return nil
        }
        guard let (expected, found) = digests.mismatch(completeLength: length) else {
            sink.didComparePassing()
            return nil
        }
        let words = "\(request.target.redacted) has \(found) instead of \(expected)"
        recorder.logger.warning("digest mismatch of a body that is not stored: \(words)")
        let error = CacheError(.integrityFailed, "\(words); its bytes have been delivered")
        return PassThroughMismatch(error: error, isOfPromise: sink.isPromised(expected))
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

/// A body that was delivered without being stored, and is not what it has to be.
struct PassThroughMismatch {
    let error: CacheError
    /// Whether the origin promised another one, rather than this request alone expected it.
    let isOfPromise: Bool
}

extension StoredResponse {
    /// The digests of the body that the origin promised.
    var promisedDigests: [ContentDigest] {
        // A part that is stored by itself has fields that speak of the whole.
        status == 203 || status == 206 ? [] : ContentDigest.promised(in: fields)
    }
}
