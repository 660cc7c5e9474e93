public import HTTPTypes

/// A request field that `Vary` names, as it was when the response was stored (RFC 9111 §4.1).
public struct SelectingField: Hashable, Sendable {
    /// The name in lower case.
    public let name: String
    /// The normalised value, a digest of it where it is a secret, or nil if the request had none.
    public let value: String?

    /// Creates a field from a lower-case name and a value that is normalised already.
    public init(name: String, value: String?) {
        self.name = name
        self.value = value
    }

    /// The field `name` of a request.
    init(_ name: String, of request: HTTPFields) {
        self.name = name
        self.value = HTTPField.Name(name).flatMap { request[$0] }.map { text in
            let normalised = SelectingFieldNormalisation.normalised(text, of: name)
            return Self.isSecret(name) ? SHA256Digest.hex(of: normalised) : normalised
        }
    }

    /// Credentials are compared but never kept.
    private static func isSecret(_ name: String) -> Bool {
        ["authorization", "cookie", "proxy-authorization"].contains(name)
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
        guard !names.contains("*") else { return [SelectingField(name: "*", value: nil)] }
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
