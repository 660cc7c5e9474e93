public import HTTPTypes

/// A request field that `Vary` names, as it was when the response was stored (RFC 9111 §4.1).
public struct SelectingField: Hashable, Sendable {
    /// The name in lower case.
    public let name: String
    /// The digest of the normalised value, or nil if the request had none.
    ///
    /// Values are compared but never kept: any field may be a secret.
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

    /// A field as version 1 of the stored form has it: the normalised value, a digest only of
    /// credentials.
    ///
    /// Every field was normalised as a list then, so that what is none and has a value may have
    /// been another one: it matches nothing any more.
    init(name: String, value: String?) {
        let isDigest = ["authorization", "cookie", "proxy-authorization"].contains(name)
        let isKnown = isDigest || SelectingFieldNormalisation.isList(name)
        self.init(
            name: name,
            digest: value.map { isDigest ? $0 : isKnown ? SHA256Digest.hex(of: $0) : "unknown" }
        )
    }
}

/// Whether a stored response was selected by the same fields as a request has (RFC 9111 §4.1).
public enum VaryMatch {
    /// What to keep beside a response: the request fields that its `Vary` names, by name.
    ///
    /// - Parameters:
    ///   - response: the fields of the response.
    ///   - request: the fields of the request as the origin saw them.
    /// - Returns: the fields; `*` alone if the response varies by more than fields.
    public static func selectingFields(
        response: HTTPFields,
        request: HTTPFields
    ) -> [SelectingField] {
        guard let vary = response[.vary] else { return [] }
        let names = Set(FieldNameList.parse(vary)).sorted()
        guard !names.contains("*") else { return [SelectingField(name: "*", digest: nil)] }
        return names.map { SelectingField($0, of: request) }
    }

    /// Whether the request has the same values, after normalisation, in all of `selecting`.
    ///
    /// A field that is absent matches only an absent one; `*` matches nothing. Without `Vary`
    /// nothing is allocated.
    public static func matches(_ selecting: [SelectingField], request: HTTPFields) -> Bool {
        selecting.allSatisfy { $0.name != "*" && SelectingField($0.name, of: request) == $0 }
    }
}
