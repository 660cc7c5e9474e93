import TieredCache

/// One line of `downloads` and `resume`.
struct DownloadReport: Encodable, Equatable {
    var id: String
    var url: String
    var state: String
    var bytes: Int64
    @Nullable var total: Int64?
    var attempts: Int64
    /// The error of a failed download; nil for others.
    @Nullable var error: String?
    /// The process ID of another owner of the directory, which may be running the download.
    @Nullable var owner: Int64?

    /// `paused  12.3 MiB of 64.0 MiB  http://…`, and the reason of a failure, or the owner.
    var line: String {
        let all = total.map { ProgressLine.size($0) } ?? "?"
        let note = error ?? owner.map { "process \($0) owns the directory and may be running it" }
        let end = note.map { "  (\($0))" } ?? ""
        return "\(state)  \(ProgressLine.size(bytes)) of \(all)  \(url)\(end)".asOneLine
    }
}

extension DownloadReport {
    init(_ status: DownloadStatus, owner: Int32? = nil) {
        var error: String?
        if case .failed(let problem) = status.state { error = problem.message }
        self.init(
            id: status.id.description,
            url: status.url,
            state: status.state.name,
            bytes: status.bytes,
            total: status.total,
            attempts: Int64(status.attempts),
            error: error,
            owner: status.state.isMeantToContinue ? owner.map(Int64.init) : nil
        )
    }
}
