public import HTTPTypes

/// A request field that `Vary` names, with its value when the response was stored (RFC 9111 §4.1).
public struct SelectingField: Hashable, Sendable {
    /// The name in lower case.
    public let name: String
    /// The digest of the normalised value; nil if the request did not have the field.
    ///
    /// Values are compared but never stored, because any field may be a secret.
    public let digest: String?

    /// Creates a field from a lower-case name and a digest.
    public init(name: String, digest: String?) {
        self.name = name
        self.digest = digest
    }

    /// The field `name` of a request.
    init(_ name: String, of request: HTTPFields) {
        self.init(
            name: name,
            digest: SelectingFieldNormalisation.value(name, of: request).map {
                SHA256Digest.hex(of: $0)
            }
        )
    }

    /// Converts a field of version 1 of the stored form, which has normalised values, and digests
    /// of credentials only.
    ///
    /// Version 1 normalised every field as a list, so the original value of other fields is
    /// unknown: they no longer match anything.
    init(name: String, value: String?) {
        let isDigest = ["authorization", "cookie", "proxy-authorization"].contains(name)
        let isKnown = isDigest || SelectingFieldNormalisation.isList(name)
        self.init(
            name: name,
            // "unknown" has not the length of a digest, so nothing equals it.
            digest: value.map { isDigest ? $0 : isKnown ? SHA256Digest.hex(of: $0) : "unknown" }
        )
    }
}

/// Compares the selecting fields of a stored response with a request (RFC 9111 §4.1).
public enum VaryMatch {
    /// The request fields that a response's `Vary` names, to be stored with it, sorted by name.
    ///
    /// - Parameters:
    ///   - response: the fields of the response.
    ///   - request: the fields of the request as sent to the origin.
    /// - Returns: the fields; `*` alone if the response varies by more than fields.
    public static func selectingFields(
        response: HTTPFields,
        request: HTTPFields
    ) -> [SelectingField] {
        guard let vary = response.value(of: .vary) else { return [] }
        let names = Set(FieldNameList.parse(vary)).sorted()
        guard !names.contains("*") else { return [SelectingField(name: "*", digest: nil)] }
        return names.map { SelectingField($0, of: request) }
    }

    /// Whether the request has the same values, after normalisation, in all of `selecting`.
    ///
    /// An absent field matches only an absent one; `*` matches nothing. Whoever prefers the
    /// `language` of the response to all others would be given it in any case. Allocates nothing
    /// without `Vary`.
    public static func matches(
        _ selecting: [SelectingField],
        request: HTTPFields,
        language: String? = nil
    ) -> Bool {
        selecting.allSatisfy { field in
            if SelectingField(field.name, of: request) == field { return field.name != "*" }
            guard field.name == "accept-language", let language else { return false }
            return PreferredLanguage.of(request) == language.lowercased()
        }
    }
}
