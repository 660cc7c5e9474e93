import Logging

// Removals from the disk: counters, listeners, log and history.
extension Recorder {
    func didLeave(_ removal: DiskRemoval) {
        count(removal)
        history?.note(
            removal.kind,
            because: removal.reason,
            key: removal.key,
            name: removal.name,
            count: removal.name == nil ? Int64(removal.entries) : removal.bytes
        )
        guard case .evicted(let reason) = removal.cause, let key = removal.key else { return }
        logger.debug(
            "entry evicted",
            metadata: [
                LogKeys.key: "\(key.redacted)",
                LogKeys.reason: "\(reason)",
                LogKeys.bytes: "\(removal.bytes)",
            ]
        )
        let why: MediaCache.Event.EvictionReason = reason == .volumeFloor ? .diskFloor : .size
        events.post(MediaCache.Event(key: key, .evicted(.disk, why, bytes: removal.bytes)))
    }

    private func count(_ removal: DiskRemoval) {
        switch removal.cause {
        case .evicted: counters.add(removal.bytes, to: .bytesEvicted)
        case .corrupted where removal.isPartial && removal.bytes > 0:
            counters.add(to: .blocksDamaged)
        default: break
        }
        guard !removal.isPartial else { return }
        counters.add(Int64(removal.entries), to: removal.cause.counter)
    }
}

extension DiskRemoval.Cause {
    fileprivate var counter: StatisticsCounters.Counter {
        switch self {
        case .expired: .entriesExpired
        case .evicted: .entriesEvicted
        case .replaced: .entriesReplaced
        case .removed: .entriesRemoved
        case .corrupted: .entriesCorrupted
        }
    }
}

extension DiskRemoval {
    fileprivate var kind: MediaCache.RecordedEvent.Kind {
        switch cause {
        case .expired: .expired
        case .evicted: isPartial ? .shortened : .evicted
        case .replaced: .replaced
        case .removed: .removed
        case .corrupted: .corrupted
        }
    }

    fileprivate var reason: String? {
        switch cause {
        case .evicted(let reason): return reason.rawValue
        case .corrupted where isPartial: return bytes > 0 ? "block" : "record"
        case .removed where name == nil: return "everything"
        case .corrupted, .expired, .replaced, .removed: return nil
        }
    }
}
