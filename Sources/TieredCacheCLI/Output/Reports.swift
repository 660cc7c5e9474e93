/// The JSON of `get` and `prefetch` about one URL.
struct GetReport: Codable, Equatable, Sendable {
    /// The URL without userinfo.
    let url: String
    let status: Int
    /// `memory`, `disk`, `origin`, `revalidated` or `stale`.
    let source: String
    /// The sum of ``fromCache`` and ``fromOrigin``.
    let bytes: Int64
    let fromCache: Int64
    let fromOrigin: Int64
    let seconds: Double

    init(
        url: String,
        status: Int,
        source: String,
        bytesFromCache: Int64,
        bytesFromOrigin: Int64,
        elapsed: Duration
    ) {
        self.url = url
        self.status = status
        self.source = source
        bytes = bytesFromCache + bytesFromOrigin
        fromCache = bytesFromCache
        fromOrigin = bytesFromOrigin
        seconds = elapsed.roundedSeconds
    }
}

/// The JSON of `list` and `show` about one entry.
struct EntryReport {
    var url: String
    var key: String
    var status: Int
    /// The length of the body in bytes; nil if unknown.
    var length: Int64?
    var stored: Int64
    var isComplete: Bool
    var isPinned: Bool
    /// The header fields; only for `show`.
    var headers: [(name: String, value: String)]?
}

extension EntryReport: Encodable {
    private enum CodingKeys: String, CodingKey {
        case url, key, status, length, headers
        case stored = "held"
        case isComplete = "complete"
        case isPinned = "pinned"
    }

    /// One field line is a string, several with one name are an array of strings.
    private enum HeaderValue: Encodable {
        case one(String)
        case several([String])

        func encode(to encoder: any Encoder) throws {
            switch self {
            case .one(let value): try value.encode(to: encoder)
            case .several(let values): try values.encode(to: encoder)
            }
        }
    }

    func encode(to encoder: any Encoder) throws {
        var container = encoder.container(keyedBy: CodingKeys.self)
        try container.encode(url, forKey: .url)
        try container.encode(key, forKey: .key)
        try container.encode(status, forKey: .status)
        try container.encode(length, forKey: .length)
        try container.encode(stored, forKey: .stored)
        try container.encode(isComplete, forKey: .isComplete)
        try container.encode(isPinned, forKey: .isPinned)
        guard let headers else { return }
        let lines = Dictionary(grouping: headers) { $0.name.lowercased() }.mapValues { lines in
            lines.count == 1 ? HeaderValue.one(lines[0].value) : .several(lines.map(\.value))
        }
        try container.encode(lines, forKey: .headers)
    }
}

/// The JSON of `verify`.
struct VerifyReport: Encodable, Equatable {
    var entries: Int64
    var blocks: Int64
    var damaged: Int64
    var repaired: Int64
}

extension Duration {
    /// The duration in seconds as a fraction.
    var inSeconds: Double {
        let (seconds, attoseconds) = components
        return Double(seconds) + Double(attoseconds) / 1e18
    }

    /// The duration in seconds, rounded to microseconds.
    var roundedSeconds: Double { (inSeconds * 1e6).rounded() / 1e6 }
}
