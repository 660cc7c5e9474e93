import HTTPCaching

/// Computes digests of a body that its entry does not hold whole, as its bytes come, to compare them
/// at its end.
///
/// The reader has the bytes by then: a mismatch is an error at the end, without a second attempt.
final class PassingDigests: Sendable {
    private struct State: ~Copyable {
        var position: Int64 = 0
        var md5: DigestContext?
        var sha256: DigestContext?
        /// The digests of all bytes, once they were asked for.
        var found: [ContentDigest]?

        borrowing func copy() -> State {
            State(position: position, md5: md5?.copy(), sha256: sha256?.copy())
        }
    }

    /// The digests to compare with.
    let expected: [ContentDigest]
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

    /// Digests that go on behind the bytes so far of others, which stay as they are.
    init(behind others: PassingDigests) {
        expected = others.expected
        state = Guarded(others.state.withLock { $0.copy() })
    }

    /// Adds the bytes at `offset`; those that have come before count once, and bytes behind others
    /// that have not come end the comparison.
    func take(_ chunk: BodyChunk, at offset: Int64) {
        state.withLock { state in
            guard state.position >= offset else {
                state = State(position: -1)
                return
            }
            chunk.withUnsafeBytes { bytes in
                guard state.position - offset < bytes.count else { return }
                let rest = UnsafeRawBufferPointer(
                    rebasing: bytes[Int(state.position - offset)...]
                )
                state.position += Int64(rest.count)
                if state.md5?.update(rest) == false { state.md5 = nil }
                if state.sha256?.update(rest) == false { state.sha256 = nil }
            }
        }
    }

    /// Adds the stored bytes of an entry from the next byte on up to `end`, if there is no gap
    /// between; blocks on the disk.
    func take(_ entry: DiskEntry, to end: Int64) {
        var position = position
        guard position >= 0, let stored = entry.storedRange(at: position), stored.upperBound >= end
        else { return }
        while position < end {
            let next = min(position + (256 << 10), end)
            let bytes = entry.readAll(position..<next)
            // Lost just now: later bytes are out of order, so they are not compared.
            guard !bytes.isEmpty else { return }
            take(BodyChunk(bytes), at: position)
            position += Int64(bytes.count)
        }
    }

    /// The end of the bytes that have come in order; -1 once some have not.
    var position: Int64 { state.withLock { $0.position } }

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
