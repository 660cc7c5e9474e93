import HTTPTypes

/// Cache directives for one class of caches (RFC 9213).
///
/// A shared cache obeys `CDN-Cache-Control` instead of `Cache-Control` and `Expires`, if it is
/// present, not empty and well formed. A private cache ignores it.
enum TargetedCacheControl {
    /// The fields that a shared cache obeys.
    private static let targets = [HTTPField.Name.makeStatic("CDN-Cache-Control")]

    /// The directives of the first valid field; nil if there is none.
    static func parse(_ fields: HTTPFields) -> ResponseCacheControl? {
        for name in targets {
            if let value = fields.value(of: name),
                let control = ResponseCacheControl(targeted: value)
            {
                return control
            }
        }
        return nil
    }
}

extension ResponseCacheControl {
    /// Reads a targeted field (RFC 9213 §2.1).
    ///
    /// Returns nil if it is empty, no structured dictionary, or has a directive with a value of a
    /// wrong type; then the field must be ignored.
    init?(targeted fieldValue: String) {
        guard let dictionary = StructuredDictionary(fieldValue), !dictionary.members.isEmpty
        else { return nil }
        self.init("")
        for member in dictionary.members {
            guard apply(targeted: member.key, member.value) else { return nil }
        }
    }

    private mutating func apply(targeted name: String, _ value: StructuredDictionary.Value) -> Bool
    {
        switch (Self.argumentKind(of: name), value) {
        // RFC 9213 §2.1: unknown members are ignored; `?0` is a directive that is not there.
        case (.unknown, _), (.none, .boolean(false)), (.optionalFields, .boolean(false)):
            return true
        case (.none, .boolean(true)), (.optionalFields, .boolean(true)):
            apply(name, argument: .none)
        case (.seconds, .integer(let seconds)) where seconds >= 0:
            apply(name, argument: .text(String(seconds)))
        case (.optionalFields, .string(let text)), (.optionalFields, .token(let text)):
            apply(name, argument: .text(text))
        default:
            return false
        }
        return true
    }

    private enum ArgumentKind {
        case unknown
        case none
        case seconds
        case optionalFields
    }

    private static func argumentKind(of name: String) -> ArgumentKind {
        switch name {
        case "max-age", "s-maxage", "stale-while-revalidate", "stale-if-error": .seconds
        case "no-cache", "private": .optionalFields
        case "no-store", "public", "must-revalidate", "proxy-revalidate", "must-understand",
            "immutable", "no-transform":
            .none
        default: .unknown
        }
    }
}
