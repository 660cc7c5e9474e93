import TieredCacheAgent

/// A download of an agent, for the lists of commands.
struct AgentDownload: Encodable, Equatable {
    let gid: String
    let url: String
    let state: String
    let bytes: Int64
    /// Nil while the length is unknown.
    let total: Int64?
    let bytesPerSecond: Int64
    /// The path of the file; empty while that is not known.
    let path: String
    let error: String?
    /// The conditions that it waits for; nil for none.
    let waitsFor: [String]?

    private static let keys: JSONValue = [
        "gid", "status", "totalLength", "completedLength", "downloadSpeed", "files", "errorMessage",
        "waitsFor",
    ]
    private static let page: Int64 = 500

    /// Nil for a value that is no answer of an agent.
    init?(_ value: JSONValue) {
        guard let gid = value["gid"]?.string, let state = value["status"]?.string,
            let file = value["files"]?.array?.first,
            let url = file["uris"]?.array?.first?["uri"]?.string
        else { return nil }
        let number = { (name: String) in value[name]?.string.flatMap { Int64($0) } ?? 0 }
        self.gid = gid
        self.url = url
        self.state = state
        bytes = number("completedLength")
        let length = number("totalLength")
        total = length > 0 || state == "complete" ? length : nil
        bytesPerSecond = number("downloadSpeed")
        path = file["path"]?.string ?? ""
        error = value["errorMessage"]?.string.flatMap { $0.isEmpty ? nil : $0 }
        waitsFor = value["waitsFor"]?.array?.compactMap(\.string)
    }

    /// All downloads of an agent: those that run, those that wait, and those that have stopped.
    static func all(of agent: AgentClient) throws(CommandFailure) -> [AgentDownload] {
        var values = try agent.ask("aria2.tellActive", [keys]).array ?? []
        for method in ["aria2.tellWaiting", "aria2.tellStopped"] {
            var offset: Int64 = 0
            while true {
                let part = try agent.ask(method, [.integer(offset), .integer(page), keys]).array
                values += part ?? []
                guard let part, Int64(part.count) == page else { break }
                offset += page
            }
        }
        return values.compactMap(AgentDownload.init)
    }

    /// One line for people.
    var line: String {
        let words = [
            state.padded(to: 8), gid, amount.padded(to: 22), error ?? (path.isEmpty ? url : path),
        ]
        return words.joined(separator: "  ").asOneLine
    }

    private var amount: String {
        if let waitsFor { return "for \(waitsFor.joined(separator: ", "))" }
        guard let total else { return bytes > 0 ? ProgressLine.size(bytes) : "" }
        guard state != "complete" else { return ProgressLine.size(total) }
        let percent = total > 0 ? Int(Double(bytes) / Double(total) * 100) : 0
        let rate = bytesPerSecond > 0 ? " \(ProgressLine.size(bytesPerSecond))/s" : ""
        return "\(percent) % of \(ProgressLine.size(total))\(rate)"
    }
}

extension String {
    fileprivate func padded(to count: Int) -> String {
        self + String(repeating: " ", count: max(0, count - self.count))
    }
}
