import HTTPTypes

/// The rules of RFC 9110 §13 and §14 for conditions and ranges, as a correct origin applies them.
///
/// Written independently of the engine's rules on purpose: the two implementations must agree.
enum OriginConditions {
    /// The part of a representation that a `Range` field selects.
    enum Selection: Equatable {
        /// The whole representation: no field, another unit, several ranges, or bad grammar.
        case whole
        /// These bytes.
        case part(Range<Int64>)
        /// No byte of it exists (416).
        case unsatisfiable
    }

    /// Whether the client's copy is current (304, RFC 9110 §13.2.2).
    ///
    /// A date counts only if it is the very `Last-Modified`, as in nginx's default.
    static func isNotModified(request: OriginRequest, resource: OriginResource) -> Bool {
        if let candidates = request.fields[.ifNoneMatch] {
            guard candidates.trimmed != "*" else { return true }
            guard let tag = resource.entityTagValue else { return false }
            return candidates.split(separator: ",").contains { opaque(String($0)) == opaque(tag) }
        }
        guard let since = request.fields[.ifModifiedSince] else { return false }
        return since == resource.lastModified
    }

    /// Whether `If-Match` or `If-Unmodified-Since` is false (412, RFC 9110 §13.2.2).
    static func failsPrecondition(request: OriginRequest, resource: OriginResource) -> Bool {
        if let candidates = request.fields[.ifMatch] {
            guard candidates.trimmed != "*" else { return false }
            guard let tag = resource.entityTagValue, !tag.hasPrefix("W/") else { return true }
            return !candidates.split(separator: ",").contains { String($0).trimmed == tag }
        }
        guard let since = request.fields[.ifUnmodifiedSince] else { return false }
        return since != resource.lastModified
    }

    /// Whether `If-Range` allows a part: strong comparison, or the very date (§13.1.5).
    static func allowsPart(request: OriginRequest, resource: OriginResource) -> Bool {
        guard let validator = request.fields[.ifRange]?.trimmed else { return true }
        guard validator.hasPrefix("\"") else { return validator == resource.lastModified }
        return validator == resource.entityTagValue
    }

    /// Reads a `Range` field: `bytes=A-B`, `bytes=A-`, `bytes=-N` (§14.1.2).
    static func selection(_ field: String?, length: Int64) -> Selection {
        guard let field = field?.trimmed, field.lowercased().hasPrefix("bytes=") else {
            return .whole
        }
        let spec = String(field.dropFirst(6)).trimmed
        let ends = spec.split(separator: "-", omittingEmptySubsequences: false)
        guard ends.count == 2, !spec.contains(",") else { return .whole }
        switch (ends[0].isEmpty, number(ends[1]), number(ends[0])) {
        case (true, let suffix?, _):
            guard suffix > 0, length > 0 else { return .unsatisfiable }
            return .part(max(0, length - suffix)..<length)
        case (false, let last, let first?):
            guard last != nil || ends[1].isEmpty else { return .whole }
            if let last, last < first { return .whole }
            guard first < length else { return .unsatisfiable }
            return .part(first..<min(length, (last ?? .max - 1) + 1))
        default:
            return .whole
        }
    }

    /// Parses digits; a number that exceeds the type becomes its maximum.
    private static func number(_ text: Substring) -> Int64? {
        guard !text.isEmpty, text.utf8.allSatisfy({ (48...57).contains($0) }) else { return nil }
        return min(Int64(text) ?? .max, .max - 1)
    }

    private static func opaque(_ tag: String) -> String {
        let tag = tag.trimmed
        return tag.hasPrefix("W/") ? String(tag.dropFirst(2)) : tag
    }
}

extension String {
    /// The text without spaces and tabs at its ends.
    fileprivate var trimmed: String {
        let isSpace: (Character) -> Bool = { $0 == " " || $0 == "\t" }
        guard let first = firstIndex(where: { !isSpace($0) }),
            let last = lastIndex(where: { !isSpace($0) })
        else { return "" }
        return String(self[first...last])
    }
}
