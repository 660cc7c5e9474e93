public import FoundationEssentials
import SystemPackage
public import TieredCache

extension DownloadAgent {
    /// A download of the session, as it is at one time.
    public struct Download: Hashable, Sendable, Identifiable {
        /// State, bytes and rate, as of a job of `cache.downloads`.
        ///
        /// A failure has no status; the rate is that of the last second.
        public var status: DownloadStatus
        /// Where the file is, once ``status`` is finished, or will be; nil while that is unknown.
        public var file: URL?
        /// The conditions that it waits for, such as `unmetered`.
        public var waitsFor: [String] = []

        /// The identifier, by which each call knows it.
        public var id: DownloadID { status.id }
        /// The state.
        public var state: DownloadState { status.state }
    }
}

extension DownloadAgent.Download {
    /// The members that ``init(_:)`` reads.
    static let keys: JSONValue = [
        "gid", "status", "totalLength", "completedLength", "downloadSpeed", "files", "errorCode",
        "errorMessage", "waitsFor",
    ]

    /// Nil for a value that is no answer of an agent.
    init?(_ value: JSONValue) {
        guard let id = value["gid"]?.string.flatMap({ DownloadID($0) }),
            let file = value["files"]?.array?.first,
            let url = file["uris"]?.array?.first?["uri"]?.string
        else { return nil }
        let number = { (name: String) in value[name]?.string.flatMap { Int64($0) } ?? 0 }
        waitsFor = value["waitsFor"]?.array?.compactMap(\.string) ?? []
        let state: DownloadState
        switch value["status"]?.string {
        case "waiting": state = waitsFor.contains("network") ? .waitingForNetwork : .queued
        case "active": state = .running
        case "paused": state = .paused
        case "complete": state = .finished
        case "removed": state = .cancelled
        case "error":
            let message = value["errorMessage"]?.string ?? ""
            state = .failed(DownloadProblem(CacheError(Self.code(number("errorCode")), message)))
        default: return nil
        }
        status = DownloadStatus(id: id, url: url, state: state, priority: .normal)
        status.bytes = number("completedLength")
        let total = number("totalLength")
        status.total = total > 0 || state == .finished ? total : nil
        status.bytesPerSecond = state == .running ? Double(number("downloadSpeed")) : nil
        self.file = file["path"]?.string.flatMap { path in
            path.isEmpty ? nil : URL(file: FilePath(path), directoryHint: .notDirectory)
        }
    }

    /// The code for one of aria2's numbers, the reverse of ``DownloadFailure``.
    private static func code(_ number: Int64) -> CacheError.Code {
        switch number {
        case 2: .timedOut
        case 3, 22, 24, 29: .httpStatus
        case 8: .representationChanged
        case 9, 13...18: .localStorage
        case 28: .invalidArgument
        case 32: .integrityFailed
        default: .originFailed
        }
    }
}
