import HTTPCaching
import Logging

/// Compares what one reader gets of a body with what the body has to be.
///
/// Each reader compares for itself: its bytes may come from a file, past the disk, or in part from
/// each, and a file may lose them behind it. They count in order, from the first one on; a reader
/// that leaves some out compares nothing.
final class ReaderDigests: Sendable {
    /// What is known of the body at its end.
    enum Finding: Equatable, Sendable {
        /// The reader has left bytes out.
        case incomplete
        case right
        case wrong(ContentDigest, found: ContentDigest)
    }

    private struct State: ~Copyable, Sendable {
        /// The end of the bytes that have come in order.
        var position: Int64 = 0
        var md5: DigestContext?
        var sha256: DigestContext?
        /// What the whole body was found to be.
        var finding: Finding?
        var error: CacheError?

        mutating func take(_ bytes: UnsafeRawBufferPointer, at offset: Int64) {
            let known = position - offset
            guard known >= 0, known < bytes.count else { return }
            let rest = UnsafeRawBufferPointer(rebasing: bytes[Int(known)...])
            position += Int64(rest.count)
            if md5?.update(rest) == false { md5 = nil }
            if sha256?.update(rest) == false { sha256 = nil }
        }
    }

    private let promised: [ContentDigest]
    private let judge: BodyJudge
    private let state: Guarded<State>

    /// - Parameters:
    ///   - promised: the digests that the origin promises.
    ///   - judge: the judge of the request, with the digests that this expects.
    init(promised: [ContentDigest], judge: BodyJudge) {
        let names = Set((promised + judge.request.expectedDigests).map(\.algorithm))
        (self.promised, self.judge) = (promised, judge)
        state = Guarded(
            State(
                md5: names.contains(.md5) ? DigestContext(.md5) : nil,
                sha256: names.contains(.sha256) ? DigestContext(.sha256) : nil
            )
        )
    }

    /// Adds the bytes at `offset`; those that have come before count as they came first, and those
    /// behind others that have not come do not count.
    func take(_ bytes: UnsafeRawBufferPointer, at offset: Int64) {
        nonisolated(unsafe) let bytes = bytes  // Used only while this call lasts.
        state.withLock { $0.take(bytes, at: offset) }
    }

    /// What the body was found to be.
    ///
    /// Digests of an algorithm that this system lacks are left out.
    ///
    /// - Parameter length: the length of the body, which no bytes follow.
    /// - Returns: the finding; the same at each call from the end of the body on.
    func finding(atEnd length: Int64) -> Finding {
        state.withLock { state in
            guard state.position == length else { return .incomplete }
            if let finding = state.finding { return finding }
            let found = [state.md5?.finish(), state.sha256?.finish()].compactMap { $0 }
            var finding = Finding.right
            for digest in promised + judge.request.expectedDigests {
                guard let other = found.first(where: { $0.algorithm == digest.algorithm }),
                    other != digest
                else { continue }
                finding = .wrong(digest, found: other)
                break
            }
            state.finding = finding
            return finding
        }
    }

    /// Compares a body of which no file is whole, so that its readers alone can.
    ///
    /// - Parameter length: the length of the body, which no bytes follow.
    /// - Throws: `.integrityFailed`, or `.representationChanged` where it is to be fetched once
    ///   more, for a wrong body: the same at each call.
    func check(atEnd length: Int64) throws(CacheError) {
        switch finding(atEnd: length) {
        case .incomplete: return
        case .right: judge.didDeliver()
        case .wrong(let digest, let found):
            let isPromise = promised.contains(digest)
            let (error, isNew) = state.withLock { state in
                if let error = state.error { return (error, false) }
                let error = judge.error(
                    delivering: found,
                    insteadOf: digest,
                    isPromise: isPromise
                )
                state.error = error
                return (error, true)
            }
            if isNew { judge.storage.recorder.logger.warning("digest mismatch: \(error.message)") }
            throw error
        }
    }
}

// Delivered bytes.
extension BodyJudge {
    /// What the reader of a whole body compares its bytes with; nil if nothing is to be decided.
    ///
    /// - Parameters:
    ///   - entry: the entry of the body.
    ///   - hasGaps: whether bytes may come that no decision so far is about.
    /// - Returns: the digests.
    func digests(of entry: DiskEntry, hasGaps: Bool) -> ReaderDigests? {
        let isDue = awaitsDecision(entry)
        if hasGaps {
            return digests(promised: request.relay == nil ? entry.promise : [])
        }
        guard isDue || !request.expectedDigests.isEmpty, !accepts(entry) else { return nil }
        return digests(promised: isDue ? Self.promise(of: entry) : [])
    }

    /// The same for the whole body of a response that is not stored.
    func digests(of head: StoredResponse) -> ReaderDigests? {
        // A relay verifies nothing: the recipient of the fields can (RFC 9530 §1).
        digests(promised: request.relay == nil ? head.promisedDigests : [])
    }

    private func digests(promised: [ContentDigest]) -> ReaderDigests? {
        guard !promised.isEmpty || !request.expectedDigests.isEmpty else { return nil }
        return ReaderDigests(promised: promised, judge: self)
    }

    /// Notes that a reader has found a body right that is not stored.
    func didDeliver() {
        origins.integrity.withLock { integrity in
            integrity.didMatch(request.key)
            integrity.didMatch(request.key, expecting: request.expectedDigests)
        }
    }

    /// The error of a reader that has found a body wrong that is not stored.
    ///
    /// The reader has the bytes by then, so there is no second attempt; but a guest fetches once
    /// more, past what the owner has stored.
    func error(
        delivering found: ContentDigest,
        insteadOf expected: ContentDigest,
        isPromise: Bool
    ) -> CacheError {
        let words = "\(request.target.redacted) has \(found) instead of \(expected)"
        let final = CacheError(.integrityFailed, "\(words); its bytes have been delivered")
        guard storage.storageError?.code == .notOwner else { return final }
        let now = origins.time.monotonicTime()
        let decision = origins.integrity.withLock {
            $0.didMismatch(
                request.key,
                expecting: isPromise ? [] : request.expectedDigests,
                isGone: false,
                now: now
            )
        }
        guard decision == .refetch else { return final }
        return CacheError(.representationChanged, "\(words); fetch it again")
    }
}
