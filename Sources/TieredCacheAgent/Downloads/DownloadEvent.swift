/// What clients are notified of, under aria2's names.
package enum DownloadEvent: String, Hashable, Sendable, CaseIterable {
    case start = "aria2.onDownloadStart"
    case pause = "aria2.onDownloadPause"
    case stop = "aria2.onDownloadStop"
    case complete = "aria2.onDownloadComplete"
    case error = "aria2.onDownloadError"

    /// The message to a client.
    func message(about gid: GID) -> JSONValue {
        [
            "jsonrpc": "2.0", "method": .string(rawValue),
            "params": [["gid": .string("\(gid)")]],
        ]
    }
}

/// An event of one download.
package struct DownloadNotification: Hashable, Sendable {
    package let event: DownloadEvent
    package let gid: GID
    /// The session of the download.
    package let session: String?
    /// The rank of the result; nil where it is none.
    package let rank: Int64?
    /// Whether no download of the session is left that has not stopped.
    package let isLast: Bool

    /// The message to a client.
    package var value: JSONValue { event.message(about: gid) }
}
