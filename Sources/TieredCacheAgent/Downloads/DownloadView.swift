import TieredCache

/// What programs see of a download: the members of aria2's `tellStatus`.
struct DownloadView {
    /// Those of aria2's pieces; ours are the cache's own blocks, which programs do not see.
    private static let pieceLength: Int64 = 1 << 20

    let record: DownloadRecord
    let options: DownloadOptions
    let isActive: Bool
    let speed: Int64
    /// What it waits for.
    let awaited: [Condition]

    /// One of a table that has not stopped.
    init(_ download: DownloadTable.Live, in table: DownloadTable) {
        record = download.record
        options = download.record.options.over(table.options)
        awaited =
            record.state == .waiting && !download.isActive ? table.awaited(by: download) : []
        isActive = download.isActive
        speed = download.speed
    }

    /// One that has stopped.
    init(_ record: DownloadRecord, options: DownloadOptions) {
        self.record = record
        self.options = record.options.over(options)
        awaited = []
        isActive = false
        speed = 0
    }

    private var status: String { isActive ? "active" : record.state.rawValue }

    /// All members, or those of some names.
    func value(keys: [String]) -> JSONValue {
        let wanted = Set(keys)
        var members: [String: JSONValue] = [:]
        let put = { (name: String, value: @autoclosure () -> JSONValue?) in
            guard wanted.isEmpty || wanted.contains(name) else { return }
            members[name] = value()
        }
        put("gid", .string("\(record.gid)"))
        put("status", .string(status))
        put("totalLength", text(record.total ?? 0))
        put("completedLength", text(record.completed))
        put("uploadLength", "0")
        put("downloadSpeed", text(speed))
        put("uploadSpeed", "0")
        put("connections", isActive ? "1" : "0")
        put("pieceLength", text(Self.pieceLength))
        put("numPieces", text(pieces))
        put("bitfield", bitfield)
        put("dir", .string(options["dir"] ?? ""))
        put("files", files)
        if !awaited.isEmpty {
            put("waitsFor", .array(awaited.map { .string($0.rawValue) }))
        }
        if record.state.isStopped {
            put("errorCode", text(Int64(record.errorCode ?? 1)))
            put("errorMessage", .string(record.errorMessage ?? ""))
        }
        return .object(members)
    }

    private func text(_ number: Int64) -> JSONValue { .string(String(number)) }

    private var pieces: Int64 {
        let total = record.total ?? 0
        return total / Self.pieceLength + (total % Self.pieceLength > 0 ? 1 : 0)
    }

    /// Which pieces have come, a bit each in hexadecimal digits; nil where the length is unknown.
    private var bitfield: JSONValue? {
        // One of a petabyte would have a text of a hundred megabytes.
        guard (1...(1 << 20)).contains(pieces) else { return nil }
        let whole = record.completed >= record.total ?? 0
        let count = whole ? Int(pieces) : Int(record.completed / Self.pieceLength)
        let digits = (Int(pieces) + 7) / 8 * 2
        let filled = String(repeating: "f", count: count / 4)
        let rest = ["", "8", "c", "e"][count % 4]
        return .string(
            filled + rest + String(repeating: "0", count: digits - count / 4 - rest.count)
        )
    }

    /// Where the file is or will be; not told before any of it has come, as with aria2.
    private var path: String {
        record.total != nil || record.completed > 0 ? record.path : ""
    }

    /// The members of `getFiles`.
    var files: JSONValue {
        [
            [
                "index": "1", "path": .string(path), "length": text(record.total ?? 0),
                "completedLength": text(record.completed), "selected": "true",
                "uris": uris,
            ]
        ]
    }

    /// The members of `getUris`.
    var uris: JSONValue {
        let isUsed = isActive || record.state.isStopped || record.total != nil
        let used = record.failed + (isUsed ? 1 : 0)
        return .array(
            record.uris.enumerated().map { index, uri in
                ["uri": .string(uri), "status": index < used ? "used" : "waiting"]
            }
        )
    }

    /// The members of `getServers`, of one that runs.
    var servers: JSONValue {
        let servers: [JSONValue] =
            record.uri.map { uri in
                [["uri": .string(uri), "currentUri": .string(uri), "downloadSpeed": text(speed)]]
            } ?? []
        return [["index": "1", "servers": .array(servers)]]
    }
}
