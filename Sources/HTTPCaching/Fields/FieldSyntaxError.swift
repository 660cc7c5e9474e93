/// A syntax error in a field that must be valid.
public struct FieldSyntaxError: Error, Hashable, Sendable, CustomStringConvertible {
    /// The name of the field, such as `Content-Range`.
    public let field: String
    /// A description of the error, without the value itself.
    public let reason: String

    init(field: String, reason: String) {
        self.field = field
        self.reason = reason
    }

    /// `invalid <field>: <reason>`.
    public var description: String { "invalid \(field): \(reason)" }
}
