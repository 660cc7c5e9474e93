import TieredCache

/// One line of `downloads` and `resume`.
struct DownloadReport: Equatable {
    var id: String
    var url: String
    var state: String
    var bytes: Int64
    var total: Int64?
    var attempts: Int64
    /// Why it gave up, if it did.
    var error: String?

    /// For programs.
    var json: JSONValue {
        .object([
            .init("id", .string(id)),
            .init("url", .string(url)),
            .init("state", .string(state)),
            .init("bytes", .integer(bytes)),
            .init("total", .optional(total)),
            .init("attempts", .integer(attempts)),
            .init("error", error.map { .string($0) } ?? .null),
        ])
    }

    /// `paused  12.3 MiB of 64.0 MiB  http://…`, and the reason of a failure.
    var line: String {
        let all = total.map { ProgressLine.size($0) } ?? "?"
        let reason = error.map { "  (\($0))" } ?? ""
        return "\(state)  \(ProgressLine.size(bytes)) of \(all)  \(url)\(reason)".asOneLine
    }
}

extension DownloadReport {
    init(_ status: DownloadStatus) {
        var error: String?
        if case .failed(let problem) = status.state { error = problem.message }
        self.init(
            id: status.id.description,
            url: status.url,
            state: status.state.name,
            bytes: status.bytes,
            total: status.total,
            attempts: Int64(status.attempts),
            error: error
        )
    }
}
