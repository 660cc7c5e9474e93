import HTTPCaching

/// Digests a body on its way past the disk, so that it can be compared at its end.
///
/// Whoever reads it has its bytes by then: a mismatch is an error at the end, without second try.
final class PassingDigests: Sendable {
    private struct State: ~Copyable {
        var position: Int64 = 0
        var md5: DigestContext?
        var sha256: DigestContext?
    }

    private let expected: [ContentDigest]
    private let state: Guarded<State>

    /// - Returns: nil where nothing is expected.
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

    /// Takes the bytes at `offset`; bytes out of order end the comparison.
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

    /// Takes what an entry holds up to `end`.
    func take(_ entry: DiskEntry, to end: Int64) {
        var position: Int64 = 0
        while position < end {
            let next = min(position + (256 << 10), end)
            let bytes = StoringSink.readAll(entry, from: position, to: next)
            // A gap: what follows is out of order, and is not compared.
            guard !bytes.isEmpty else { return }
            take(BodyChunk(bytes), at: position)
            position += Int64(bytes.count)
        }
    }

    /// The first digest that the whole body does not have; to be called once, at the end.
    ///
    /// - Parameter completeLength: how long the body is; nil for as long as what came.
    /// - Returns: what was expected and what was found; nil where nothing can be objected to.
    func mismatch(
        completeLength: Int64?
    ) -> (expected: ContentDigest, found: ContentDigest)? {
        let found = state.withLock { state -> [ContentDigest] in
            guard state.position >= 0, state.position == completeLength ?? state.position else {
                return []
            }
            return [state.md5?.finish(), state.sha256?.finish()].compactMap { $0 }
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
