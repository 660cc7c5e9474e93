import HTTPCaching

/// Computes digests of a body that bypasses the disk, to compare them at its end.
///
/// The reader has the bytes by then: a mismatch is an error at the end, without a second attempt.
final class PassingDigests: Sendable {
    private struct State: ~Copyable {
        var position: Int64 = 0
        var md5: DigestContext?
        var sha256: DigestContext?
        /// The digests of all bytes, once they were asked for.
        var found: [ContentDigest]?
    }

    private let expected: [ContentDigest]
    private let state: Guarded<State>

    /// - Returns: nil if no digest is expected.
    init?(_ expected: [ContentDigest]) {
        guard !expected.isEmpty else { return nil }
        self.expected = expected
        let names = Set(expected.map(\.algorithm))
        state = Guarded(
            State(
                md5: names.contains(.md5) ? DigestContext(.md5) : nil,
                sha256: names.contains(.sha256) ? DigestContext(.sha256) : nil
            )
        )
    }

    /// Adds the bytes at `offset`; bytes out of order end the comparison.
    func take(_ chunk: BodyChunk, at offset: Int64) {
        state.withLock { state in
            guard state.position == offset else {
                state = State(position: -1)
                return
            }
            state.position += Int64(chunk.count)
            chunk.withUnsafeBytes { bytes in
                if state.md5?.update(bytes) == false { state.md5 = nil }
                if state.sha256?.update(bytes) == false { state.sha256 = nil }
            }
        }
    }

    /// Adds the stored bytes of an entry up to `end`.
    func take(_ entry: DiskEntry, to end: Int64) {
        var position: Int64 = 0
        while position < end {
            let next = min(position + (256 << 10), end)
            let bytes = StoringSink.readAll(entry, from: position, to: next)
            // A gap: later bytes are out of order, so they are not compared.
            guard !bytes.isEmpty else { return }
            take(BodyChunk(bytes), at: position)
            position += Int64(bytes.count)
        }
    }

    /// Whether all bytes up to `length` have come in order, so that the body can be compared.
    func isWhole(to length: Int64?) -> Bool {
        state.withLock { $0.position >= 0 && $0.position == length ?? $0.position }
    }

    /// The first digest that the complete body does not match; no bytes follow.
    ///
    /// - Parameter completeLength: the length of the body; nil if it ends with the last byte
    ///   received.
    /// - Returns: the expected and the computed digest; nil if there is no mismatch.
    func mismatch(
        completeLength: Int64?
    ) -> (expected: ContentDigest, found: ContentDigest)? {
        let found = state.withLock { state -> [ContentDigest] in
            guard state.position >= 0, state.position == completeLength ?? state.position else {
                return []
            }
            if let found = state.found { return found }
            let found = [state.md5?.finish(), state.sha256?.finish()].compactMap { $0 }
            state.found = found
            return found
        }
        for digest in expected {
            guard let other = found.first(where: { $0.algorithm == digest.algorithm }),
                other != digest
            else { continue }
            return (digest, other)
        }
        return nil
    }
}
