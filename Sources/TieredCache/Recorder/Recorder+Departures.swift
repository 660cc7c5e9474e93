import Logging

// What leaves the disk: counts, listeners, log and history.
extension Recorder {
    func didLeave(_ departure: DiskDeparture) {
        count(departure)
        history?.note(
            departure.kind,
            departure.reason,
            key: departure.key,
            name: departure.name,
            count: departure.name == nil ? Int64(departure.entries) : departure.bytes
        )
        guard case .evicted(let reason) = departure.cause, let key = departure.key else { return }
        logger.debug(
            "entry evicted",
            metadata: [
                LogKeys.key: "\(key.redacted)",
                LogKeys.reason: "\(reason)",
                LogKeys.bytes: "\(departure.bytes)",
            ]
        )
        let why: CacheEvent.EvictionReason = reason == .volumeFloor ? .diskFloor : .size
        events.post(CacheEvent(key: key, .evicted(.disk, why, bytes: departure.bytes)))
    }

    private func count(_ departure: DiskDeparture) {
        switch departure.cause {
        case .evicted: counters.add(departure.bytes, to: .bytesEvicted)
        case .corrupted where departure.isPartial && departure.bytes > 0:
            counters.add(to: .blocksDamaged)
        default: break
        }
        guard !departure.isPartial else { return }
        counters.add(Int64(departure.entries), to: departure.cause.counter)
    }
}

extension DiskDeparture.Cause {
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

extension DiskDeparture {
    fileprivate var kind: RecordedEvent.Kind {
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
