import HTTPCaching
import TieredCache

/// The output of `show` about an entry, except its header fields.
struct EntryExplanation {
    let entry: EntrySummary
    let now: WallTime
    /// A description of another process that owns the directory and may be using the entry.
    var owner: String?

    var lines: [String] {
        [
            "blocks      \(BlockMap.text(stored: entry.storedRanges, length: entry.length))",
            "validator   \(validator)",
            entry.age(at: now).map { "age         \(Self.text($0))" },
            "freshness   \(freshness)",
            "class       \(entryClass)",
            lastUse.map { "last use    \($0)" },
            "lease       \(lease)",
        ].compactMap { $0 }
    }

    /// The leases of an owner are in its memory; those of other processes are visible to all.
    private var lease: String {
        if entry.isOpenElsewhere == true { return "in use by a reader of another process" }
        guard let owner else { return "none: no other process has it open" }
        return "unknown: \(owner), whose readers cannot be seen from here"
    }

    private var validator: String {
        entry.validator.map { "\($0), strong" } ?? "none that is strong: a part cannot be resumed"
    }

    private var freshness: String {
        guard let age = entry.age(at: now), let lifetime = entry.freshnessLifetime else {
            return "unknown"
        }
        let rest = lifetime - age
        if rest > .zero { return "fresh for \(Self.text(rest))" }
        return "stale for \(Self.text(.zero - rest)): validated before it is used"
    }

    private var entryClass: String {
        if entry.isPinned { return "pinned: never evicted" }
        return entry.isPrefetched ? "prefetched and not used: evicted first" : "used"
    }

    private var lastUse: String? {
        guard let use = entry.lastUse else { return nil }
        return "\(Self.text(max(.zero, .seconds(now.seconds - use)))) ago"
    }

    /// `3 d 4 h`, `5 h 6 min`, `7 min 8 s`, `9 s`.
    static func text(_ duration: Duration) -> String {
        let seconds = duration.components.seconds
        switch seconds {
        case 86_400...: return "\(seconds / 86_400) d \(seconds % 86_400 / 3600) h"
        case 3600...: return "\(seconds / 3600) h \(seconds % 3600 / 60) min"
        case 60...: return "\(seconds / 60) min \(seconds % 60) s"
        default: return "\(seconds) s"
        }
    }
}
