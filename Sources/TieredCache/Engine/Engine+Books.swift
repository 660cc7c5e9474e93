import HTTPCaching
import Logging
import SystemPackage

// What happened, for statistics, events and logs. Nothing here decides anything.
extension Engine {
    // MARK: Lookups

    func didHit(
        _ request: CacheRequest,
        _ tier: CacheEvent.Tier,
        _ decision: ReuseDecision,
        bytes: Int
    ) {
        guard tier == .disk else {
            return didHitMemory(request.key, bytes: bytes, isStale: decision.isStale)
        }
        counters.add(to: .diskHits)
        counters.add(Int64(bytes), to: .bytesFromDisk)
        if decision.isStale { counters.add(to: .staleServed) }
        events.post(CacheEvent(key: request.key, .hit(.disk, isStale: decision.isStale)))
    }

    @inline(__always)
    func didHitMemory(_ key: CacheKey, bytes: Int, isStale: Bool) {
        counters.addMemoryHit(bytes: Int64(bytes))
        if isStale { counters.add(to: .staleServed) }
        events.post(CacheEvent(key: key, .hit(.memory, isStale: isStale)))
    }

    func didMiss(_ request: CacheRequest, _ reason: CacheEvent.MissReason) {
        counters.add(to: .misses)
        counters.add(to: reason.counter)
        history?.note(.missed, reason.rawValue, key: request.key)
        events.post(CacheEvent(key: request.key, .missed(reason)))
        logger.debug(
            "lookup missed",
            metadata: [LogKeys.key: "\(request.key.redacted)", LogKeys.reason: "\(reason)"]
        )
    }

    func didServeStale(_ request: CacheRequest, from tier: CacheEvent.Tier) {
        counters.add(to: .staleServed)
        events.post(CacheEvent(key: request.key, .hit(tier, isStale: true)))
    }

    func didRevalidate(_ request: CacheRequest, isUnchanged: Bool) {
        counters.add(to: .revalidations)
        if isUnchanged { counters.add(to: .revalidationsUnchanged) }
        events.post(CacheEvent(key: request.key, .revalidated(isUnchanged: isUnchanged)))
    }

    func didFailToLookUp(_ key: CacheKey, _ error: CacheError) {
        counters.add(to: .storageFailures)
        events.post(CacheEvent(key: key, .storageFailed(error)))
        logger.warning(
            "the disk tier could not be asked",
            metadata: [LogKeys.key: "\(key.redacted)", LogKeys.error: "\(error)"]
        )
    }

    // MARK: Downloads

    func didStart(_ operation: DownloadOperation) {
        counters.add(to: .downloadsStarted)
        let offset = operation.plan.range.lowerBound
        operation.request.onNotice?(.started(offset: offset))
        events.post(CacheEvent(key: operation.request.key, .downloadStarted(offset: offset)))
        logger.debug(
            "download started",
            metadata: [
                LogKeys.url: "\(operation.request.target.redacted)",
                LogKeys.offset: "\(offset)",
            ]
        )
    }

    func didProgress(_ progress: DownloadProgress, of request: CacheRequest) {
        request.onProgress?(progress)
        events.post(
            CacheEvent(
                key: request.key,
                .downloadProgressed(
                    offset: progress.offset,
                    completeLength: progress.completeLength
                )
            )
        )
    }

    func willRetry(_ retry: DownloadRetry, of request: CacheRequest) {
        request.onNotice?(retry.isForNetwork ? .waitingForNetwork : .retrying(retry))
        let error = CacheError(.originFailed, "\(request.target.redacted): \(retry.reason)")
        events.post(
            CacheEvent(
                key: request.key,
                .downloadRetrying(attempt: retry.attempts, delay: retry.delay, error)
            )
        )
        logger.info(
            "download will be tried again",
            metadata: [
                LogKeys.url: "\(request.target.redacted)",
                LogKeys.attempt: "\(retry.attempts)",
                LogKeys.delay: "\(retry.delay)",
                LogKeys.reason: "\(retry.reason)",
            ]
        )
    }

    func didFinish(
        _ operation: DownloadOperation,
        _ result: Result<DownloadOutcome, CacheError>,
        received: Int64,
        stored: Int64,
        isComplete: Bool
    ) {
        let key = operation.request.key
        // What a download that was cancelled or failed has brought stays, and was paid for.
        counters.add(received, to: .bytesFromOrigin)
        if stored > 0 { didStore(key, .disk, bytes: stored) }
        switch result {
        case .success:
            counters.add(to: .downloadsFinished)
            events.post(CacheEvent(key: key, .downloadFinished(bytes: received)))
        case .failure(let error) where error.code == .cancelled && isComplete:
            // The last reader had the last byte, and left before the flight could say so.
            counters.add(to: .downloadsFinished)
            events.post(CacheEvent(key: key, .downloadFinished(bytes: received)))
        case .failure(let error) where error.code == .cancelled || error.code == .shutDown:
            break
        case .failure(let error):
            counters.add(to: .downloadsFailed)
            events.post(CacheEvent(key: key, .downloadFailed(error)))
            logger.info(
                "download failed",
                metadata: [
                    LogKeys.url: "\(operation.request.target.redacted)",
                    LogKeys.error: "\(error)",
                ]
            )
        }
    }

    // MARK: Storing

    func didStore(_ key: CacheKey, _ tier: CacheEvent.Tier, bytes: Int64) {
        if tier == .disk {
            counters.add(bytes, to: .bytesStored)
            history?.note(.stored, key: key, count: bytes)
        }
        events.post(CacheEvent(key: key, .stored(tier, bytes: bytes)))
    }

    /// The disk refused; the bytes are delivered all the same (invariant 9).
    func didFailToStore(_ request: CacheRequest, _ error: CacheError) {
        guard error.code != .shutDown else { return }
        counters.add(to: .storageFailures)
        history?.note(.refused, error.word, key: request.key)
        events.post(CacheEvent(key: request.key, .storageFailed(error)))
        logger.warning(
            "not stored",
            metadata: [
                LogKeys.url: "\(request.target.redacted)",
                LogKeys.error: "\(error)",
            ]
        )
    }

    func didFailToOpen(_ error: CacheError) {
        counters.add(to: .storageFailures)
        events.post(CacheEvent(key: nil, .storageFailed(error)))
        logger.warning("the disk tier is not in use", metadata: [LogKeys.error: "\(error)"])
    }
}

extension DownloadOperation.NotStored {
    /// For people, as the detail of `Cache-Status`.
    var detail: String {
        switch self {
        case .forbidden(let reason): reason.rawValue
        case .disk(let error): error.code == .notOwner ? "guest" : "disk"
        }
    }

    /// Whether the rules would have allowed to store.
    var isOfDisk: Bool {
        if case .disk = self { true } else { false }
    }

    /// What fails where storing was the purpose.
    func error(for request: CacheRequest) -> CacheError {
        switch self {
        case .disk(let error): error
        case .forbidden(let reason):
            CacheError(
                .notStorable,
                "\(request.target.redacted) may not be stored: \(reason.rawValue)"
            )
        }
    }
}

extension CacheEvent.MissReason {
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
    /// The error in one word, for the event log.
    fileprivate var word: String {
        guard let cause = cause as? FileSystemError else { return "\(code)" }
        return "\(cause.call.rawValue)-errno-\(cause.errno.rawValue)"
    }

    /// The origin's final status is an error.
    static func status(_ status: Int, for target: TargetURI) -> CacheError {
        CacheError(
            .httpStatus,
            "\(target.redacted) answered with status \(status)",
            status: status
        )
    }
}
