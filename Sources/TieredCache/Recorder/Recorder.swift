import HTTPCaching
import Logging
import SystemPackage

/// Records events: statistics, listeners, log, and the history of the directory.
///
/// Makes no decisions.
final class Recorder: Sendable {
    let counters = StatisticsCounters()
    let events = EventHub()
    let logger: Logger
    /// The history of the directory; nil if none is kept.
    let history: DirectoryHistory?

    /// - Parameters:
    ///   - configuration: the logger, and whether a history is kept.
    ///   - writers: writes the history.
    init(_ configuration: MediaCache.Configuration, writers: IOExecutor) {
        logger = configuration.logger
        let isKept = configuration.keepsHistory && configuration.path != nil
        history =
            isKept
            ? DirectoryHistory(
                counters: counters,
                time: configuration.timeSource,
                io: writers,
                logger: logger
            ) : nil
    }

    // MARK: Lookups

    func didHit(
        _ key: CacheKey,
        in tier: MediaCache.Event.Tier,
        decision: ReuseDecision,
        bytes: Int
    ) {
        guard tier == .disk else {
            return didHitMemory(key, bytes: bytes, isStale: decision.isStale)
        }
        counters.add(to: .diskHits)
        counters.add(Int64(bytes), to: .bytesFromDisk)
        if decision.isStale { counters.add(to: .staleServed) }
        events.post(MediaCache.Event(key: key, .hit(.disk, isStale: decision.isStale)))
    }

    @inline(__always)
    func didHitMemory(_ key: CacheKey, bytes: Int, isStale: Bool) {
        counters.addMemoryHit(bytes: Int64(bytes))
        if isStale { counters.add(to: .staleServed) }
        events.post(MediaCache.Event(key: key, .hit(.memory, isStale: isStale)))
    }

    func didMiss(_ key: CacheKey, because reason: MediaCache.Event.MissReason) {
        counters.add(to: .misses)
        counters.add(to: reason.counter)
        history?.note(.missed, because: reason.rawValue, key: key)
        events.post(MediaCache.Event(key: key, .missed(reason)))
        logger.debug(
            "lookup missed",
            metadata: [LogKeys.key: "\(key.redacted)", LogKeys.reason: "\(reason)"]
        )
    }

    func didServeStale(_ key: CacheKey, from tier: MediaCache.Event.Tier) {
        counters.add(to: .staleServed)
        events.post(MediaCache.Event(key: key, .hit(tier, isStale: true)))
    }

    func didRevalidate(_ key: CacheKey, isUnchanged: Bool) {
        counters.add(to: .revalidations)
        if isUnchanged { counters.add(to: .revalidationsUnchanged) }
        events.post(MediaCache.Event(key: key, .revalidated(isUnchanged: isUnchanged)))
    }

    func didFailToLookUp(_ key: CacheKey, error: CacheError) {
        guard error.isOfDisk else { return }
        counters.add(to: .storageFailures)
        events.post(MediaCache.Event(key: key, .storageFailed(error)))
        logger.warning(
            "lookup on disk failed",
            metadata: [LogKeys.key: "\(key.redacted)", LogKeys.error: "\(error)"]
        )
    }

    /// Counts stored bytes that no hit has counted.
    func didRead(_ count: Int64, from tier: MediaCache.Event.Tier) {
        counters.add(count, to: tier == .memory ? .bytesFromMemory : .bytesFromDisk)
    }

    // MARK: Downloads

    func didStart(_ key: CacheKey, target: TargetURI, at offset: Int64) {
        counters.add(to: .downloadsStarted)
        events.post(MediaCache.Event(key: key, .downloadStarted(offset: offset)))
        logger.debug(
            "download started",
            metadata: [
                LogKeys.url: "\(target.redacted)",
                LogKeys.offset: "\(offset)",
            ]
        )
    }

    /// A request has joined a running download.
    func didShareDownload() {
        counters.add(to: .downloadsShared)
    }

    func didProgress(_ progress: DownloadProgress, of key: CacheKey) {
        events.post(
            MediaCache.Event(
                key: key,
                .downloadProgressed(
                    offset: progress.offset,
                    completeLength: progress.completeLength
                )
            )
        )
    }

    func willRetry(_ retry: DownloadRetry, of key: CacheKey, target: TargetURI) {
        let error = CacheError(.originFailed, "\(target.redacted): \(retry.reason)")
        events.post(
            MediaCache.Event(
                key: key,
                .downloadRetrying(attempt: retry.attempts, delay: retry.delay, error)
            )
        )
        logger.info(
            "download will be retried",
            metadata: [
                LogKeys.url: "\(target.redacted)",
                LogKeys.attempt: "\(retry.attempts)",
                LogKeys.delay: "\(retry.delay)",
                LogKeys.reason: "\(retry.reason)",
            ]
        )
    }

    func didFinish(
        _ key: CacheKey,
        target: TargetURI,
        result: Result<DownloadOutcome, CacheError>,
        received: Int64,
        stored: Int64,
        isComplete: Bool
    ) {
        // The bytes of a cancelled or failed download are stored, and cost traffic.
        counters.add(received, to: .bytesFromOrigin)
        if stored > 0 { didStore(key, in: .disk, bytes: stored) }
        switch result {
        case .success:
            counters.add(to: .downloadsFinished)
            events.post(MediaCache.Event(key: key, .downloadFinished(bytes: received)))
        case .failure(let error) where error.code == .cancelled && isComplete:
            // The last reader has left with the last byte, before the transfer ended.
            counters.add(to: .downloadsFinished)
            events.post(MediaCache.Event(key: key, .downloadFinished(bytes: received)))
        case .failure(let error) where error.code == .cancelled || error.code == .shutDown:
            break
        case .failure(let error):
            counters.add(to: .downloadsFailed)
            events.post(MediaCache.Event(key: key, .downloadFailed(error)))
            logger.info(
                "download failed",
                metadata: [
                    LogKeys.url: "\(target.redacted)",
                    LogKeys.error: "\(error)",
                ]
            )
        }
    }

    // MARK: Storing

    func didStore(_ key: CacheKey, in tier: MediaCache.Event.Tier, bytes: Int64) {
        if tier == .disk {
            counters.add(bytes, to: .bytesStored)
            history?.note(.stored, key: key, count: bytes)
        }
        events.post(MediaCache.Event(key: key, .stored(tier, bytes: bytes)))
    }

    /// The rules of HTTP forbid storing.
    func didRefuse(_ key: CacheKey, because reason: Storability.Reason) {
        history?.note(.refused, because: reason.rawValue, key: key)
    }

    /// The disk has refused bytes, which are delivered nevertheless (invariant 9).
    func didFailToStore(_ key: CacheKey, target: TargetURI, error: CacheError) {
        guard error.isOfDisk else { return }
        counters.add(to: .storageFailures)
        history?.note(.refused, because: error.eventReason, key: key)
        events.post(MediaCache.Event(key: key, .storageFailed(error)))
        logger.warning(
            "not stored",
            metadata: [
                LogKeys.url: "\(target.redacted)",
                LogKeys.error: "\(error)",
            ]
        )
    }

    func didRemove(_ key: CacheKey) {
        events.post(MediaCache.Event(key: key, .removed))
        logger.debug("entry removed", metadata: [LogKeys.key: "\(key.redacted)"])
    }

    func didRemoveAll() {
        events.post(MediaCache.Event(key: nil, .removed))
    }

    /// The record of an entry cannot be read; the entry is missing from a list.
    func didFailToList(_ error: CacheError) {
        counters.add(to: .storageFailures)
        events.post(MediaCache.Event(key: nil, .storageFailed(error)))
        logger.error("an entry is not listed", metadata: [LogKeys.error: "\(error)"])
    }

    func didFailToOpen(_ error: CacheError) {
        counters.add(to: .storageFailures)
        events.post(MediaCache.Event(key: nil, .storageFailed(error)))
        logger.warning("the disk tier is not in use", metadata: [LogKeys.error: "\(error)"])
    }
}

extension CacheError {
    /// Whether the disk has failed: that of a guest is its owner's, as ``MediaCache/storageError``
    /// says, and does its part there.
    fileprivate var isOfDisk: Bool { code != .shutDown && code != .notOwner }
}

extension MediaCache.Event.MissReason {
    fileprivate var counter: StatisticsCounters.Counter {
        switch self {
        case .absent: .missesAbsent
        case .variant: .missesVariant
        case .stale: .missesStale
        case .partial: .missesPartial
        case .damaged: .missesDamaged
        case .bypassed: .missesBypassed
        }
    }
}

extension CacheError {
    /// The error in one eventReason, for the event log.
    fileprivate var eventReason: String {
        guard let cause = cause as? FileSystemError else { return "\(code)" }
        return "\(cause.call.rawValue)-errno-\(cause.errno.rawValue)"
    }
}
