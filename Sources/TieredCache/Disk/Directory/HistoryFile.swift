/// The files of a directory's history: their names, and the bytes charged for them.
///
/// The recorder writes and reads them.
enum HistoryFile {
    static let statistics = "STATS"
    static let events = "EVENTS"
    static let olderEvents = "EVENTS.1"
    static let names = [statistics, events, olderEvents]

    /// The bytes charged for one of the files: a fixed number, so that the sum stays exact.
    static func chargedBytes(_ status: FileStatus) -> Int64 {
        status.denseBytes(atMost: (1 << 20) + 4096)
    }
}
