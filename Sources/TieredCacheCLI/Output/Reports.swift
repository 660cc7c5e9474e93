/// What `get --json` and `prefetch --json` say about one URL.
struct GetReport: Equatable {
    /// Without userinfo.
    var url: String
    var status: Int
    /// `memory`, `disk`, `origin`, `revalidated` or `stale`.
    var source: String
    var bytesFromCache: Int64
    var bytesFromOrigin: Int64
    var elapsed: Duration

    var json: JSONValue {
        .object([
            .init("url", .string(url)),
            .init("status", .integer(Int64(status))),
            .init("source", .string(source)),
            .init("bytes", .integer(bytesFromCache + bytesFromOrigin)),
            .init("fromCache", .integer(bytesFromCache)),
            .init("fromOrigin", .integer(bytesFromOrigin)),
            .init("seconds", .number(elapsed.roundedSeconds)),
        ])
    }
}

/// What `list --json` and `show --json` say about one entry.
struct EntryReport: Equatable {
    var url: String
    var key: String
    var status: Int
    /// Nil if unknown.
    var length: Int64?
    var held: Int64
    var isComplete: Bool
    var isPinned: Bool
    /// Only for `show`.
    var headers: [(name: String, value: String)]?

    var json: JSONValue {
        var members: [JSONValue.Member] = [
            .init("url", .string(url)),
            .init("key", .string(key)),
            .init("status", .integer(Int64(status))),
            .init("length", .optional(length)),
            .init("held", .integer(held)),
            .init("complete", .bool(isComplete)),
            .init("pinned", .bool(isPinned)),
        ]
        if let headers { members.append(.init("headers", Self.json(headers))) }
        return .object(members)
    }

    /// One member for each name; several lines of one name become a list of values.
    private static func json(_ headers: [(name: String, value: String)]) -> JSONValue {
        var members: [JSONValue.Member] = []
        for header in headers {
            let name = header.name.lowercased()
            let sameName = members.firstIndex { $0.name == name }
            guard let sameName else {
                members.append(.init(name, .string(header.value)))
                continue
            }
            var values: [JSONValue]
            switch members[sameName].value {
            case .array(let earlier): values = earlier
            case let earlier: values = [earlier]
            }
            values.append(.string(header.value))
            members[sameName] = .init(name, .array(values))
        }
        return .object(members)
    }

    static func == (left: EntryReport, right: EntryReport) -> Bool { left.json == right.json }
}

/// What `verify --json` says.
struct VerifyReport: Equatable {
    var entries: Int64
    var blocks: Int64
    var damaged: Int64
    var repaired: Int64

    var json: JSONValue {
        .object([
            .init("entries", .integer(entries)),
            .init("blocks", .integer(blocks)),
            .init("damaged", .integer(damaged)),
            .init("repaired", .integer(repaired)),
        ])
    }
}

extension Duration {
    /// The duration in seconds as a fraction.
    var inSeconds: Double {
        let (seconds, attoseconds) = components
        return Double(seconds) + Double(attoseconds) / 1e18
    }

    /// Seconds to the microsecond: more digits would be noise.
    var roundedSeconds: Double { (inSeconds * 1e6).rounded() / 1e6 }
}
