import HTTPCaching
import TieredCache

/// What `events` says about one event.
struct EventReport: Equatable {
    let event: RecordedEvent

    var json: JSONValue {
        .object([
            .init("time", .string(event.time.timestamp)),
            .init("event", .string(event.kind.rawValue)),
            .init("reason", event.reason.map { .string($0) } ?? .null),
            .init("entry", event.entry.map { .string($0) } ?? .null),
            .init("count", .integer(event.count)),
            .init("url", event.url.map { .string($0) } ?? .null),
        ])
    }

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
