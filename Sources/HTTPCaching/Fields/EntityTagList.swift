/// The value of `If-Match` or `If-None-Match`: `*`, or a list of tags (RFC 9110 §13.1.1, §13.1.2).
public enum EntityTagList: Hashable, Sendable {
    /// `*`: any representation.
    case any
    /// The valid tags; other elements are skipped and match nothing.
    case tags([EntityTag])

    /// Reads a field value, all its lines joined by commas.
    public init(_ fieldValue: some StringProtocol) {
        guard fieldValue.trimmingWhitespace != "*" else {
            self = .any
            return
        }
        var scanner = FieldScanner(fieldValue)
        var tags: [EntityTag] = []
        while !scanner.isAtEnd {
            scanner.skipWhitespace()
            if let tag = EntityTag(&scanner), Self.isAtElementEnd(&scanner) {
                tags.append(tag)
            }
            _ = scanner.take { $0 != UInt8(ascii: ",") }
            _ = scanner.skip(",")
        }
        self = .tags(tags)
    }

    /// Whether `tag` is listed, by strong comparison (`If-Match`); a missing tag matches only `*`.
    public func stronglyMatches(_ tag: EntityTag?) -> Bool {
        matches(tag) { $0.stronglyMatches($1) }
    }

    /// Whether `tag` is listed, by weak comparison (`If-None-Match`).
    public func weaklyMatches(_ tag: EntityTag?) -> Bool {
        matches(tag) { $0.weaklyMatches($1) }
    }

    private func matches(_ tag: EntityTag?, by compare: (EntityTag, EntityTag) -> Bool) -> Bool {
        switch self {
        case .any: true
        case .tags(let tags): tag.map { tag in tags.contains { compare($0, tag) } } ?? false
        }
    }

    private static func isAtElementEnd(_ scanner: inout FieldScanner) -> Bool {
        scanner.skipWhitespace()
        return scanner.isAtEnd || scanner.next == UInt8(ascii: ",")
    }
}
