/// The files that tell of a directory's past: their names, and what they count as.
///
/// What stands in them is the recorder's.
enum HistoryFile {
    static let statistics = "STATS"
    static let events = "EVENTS"
    static let olderEvents = "EVENTS.1"
    static let names = [statistics, events, olderEvents]

    /// What one of the files counts as: the same at each look, so that what is charged stays true.
    static func chargedBytes(_ status: FileStatus) -> Int64 {
        status.denseBytes(atMost: (1 << 20) + 4096)
    }
}
