import HTTPCaching
import Logging

/// Row 27: decides whether a whole body is what its promised digests say, for all its readers.
///
/// The only place of this decision for stored bodies; ``SharedTransfers`` remembers it.
struct BodyJudge: Sendable {
    let storage: Storage
    let origins: Origins
    let shared: SharedTransfers
    let request: CacheRequest

    /// Makes the decision about a body, or waits for it; does nothing while the body has gaps.
    ///
    /// A mismatching body is quarantined: lookups no longer find it, and its files are kept aside
    /// until the right body has arrived or space is needed. A right one gets its name, if it waits
    /// for that.
    ///
    /// - Throws: `.representationChanged` or `.integrityFailed` for a body that does not match;
    ///   `.cancelled` if this task was cancelled while another one compared.
    func decide(about entry: DiskEntry) async throws(CacheError) {
        while entry.isWhole {
            switch shared.nextStep(of: entry) {
            case .nothing:
                return
            case .fail(let failure):
                throw failure
            case .wait(let latch):
                guard await latch.wait() != nil else { throw .leftTransfer }
            case .compare(let digests, let latch):
                let outcome = await storage.writers.run { compare(entry, with: digests) }
                shared.didCompare(entry, with: digests, outcome: outcome)
                latch.complete(with: .success(()))
                if case .none = outcome { return }
            }
        }
    }

    private func compare(
        _ entry: DiskEntry,
        with digests: [ContentDigest]
    ) -> BodyDecision.Outcome {
        do throws(CacheError) {
            // Readers may have read the ends of writers that are not on disk yet.
            try entry.sealFullEnds()
        } catch {
            recorder.didFailToStore(request.key, target: request.target, error: error)
        }
        for digest in digests {
            // Without a result this system lacks the algorithm, or a damaged block is a gap now.
            if let found = Self.digest(digest.algorithm, of: entry), found != digest {
                return .wrong(quarantine(entry, expected: digest, found: found))
            }
        }
        guard entry.isComplete else { return .none }
        origins.integrity.withLock { $0.didMatch(request.key) }
        storage.disk.openStore?.releaseQuarantine(of: entry.key)
        takeName(entry)
        return .right
    }

    /// Lets a finished successor take the name of a pinned entry.
    func takeName(_ entry: DiskEntry) {
        guard entry.hasFollowedPinned else { return }
        do throws(CacheError) {
            try entry.takeName()
        } catch {
            recorder.didFailToStore(request.key, target: request.target, error: error)
        }
        // A hit may have promoted the old body meanwhile.
        storage.memory.remove(entry.key)
    }

    private var recorder: Recorder { storage.recorder }

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
        guard entry.isComplete, let length = entry.completeLength,
            let context = DigestContext(algorithm)
        else {
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
