/// Why a field value cannot be used where it must be valid.
public struct FieldSyntaxError: Error, Hashable, Sendable, CustomStringConvertible {
    /// The name of the field, such as `Content-Range`.
    public let field: String
    /// What is wrong with its value, in words; the value itself is not repeated.
    public let reason: String

    init(_ field: String, _ reason: String) {
        self.field = field
        self.reason = reason
    }

    /// `invalid <field>: <reason>`.
    public var description: String { "invalid \(field): \(reason)" }
}
