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
