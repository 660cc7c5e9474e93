import HTTPCaching
import TieredCache

/// The output of `events` about one event.
struct EventReport: Equatable {
    let event: MediaCache.RecordedEvent

    /// `2026-11-21T08:43:38.123Z  evicted leastRecentlyUsed, 64.0 KiB  https://host/path`.
    var line: String {
        var what = event.kind.rawValue
        if let reason = event.reason { what += " \(reason)" }
        if event.count > 0 { what += ", \(amount)" }
        return [event.time.timestamp, what, event.url ?? event.entry ?? ""]
            .filter { !$0.isEmpty }.joined(separator: "  ").asOneLine
    }

    private var amount: String {
        if event.kind == .lost { return "\(event.count) events" }
        guard event.entry == nil else { return ProgressLine.size(event.count) }
        return event.count == 1 ? "1 entry" : "\(event.count) entries"
    }
}

extension EventReport: Encodable {
    private enum CodingKeys: CodingKey {
        case time, event, reason, entry, count, url
    }

    func encode(to encoder: any Encoder) throws {
        var container = encoder.container(keyedBy: CodingKeys.self)
        try container.encode(event.time.timestamp, forKey: .time)
        try container.encode(event.kind.rawValue, forKey: .event)
        try container.encode(event.reason, forKey: .reason)
        try container.encode(event.entry, forKey: .entry)
        try container.encode(event.count, forKey: .count)
        try container.encode(event.url, forKey: .url)
    }
}
