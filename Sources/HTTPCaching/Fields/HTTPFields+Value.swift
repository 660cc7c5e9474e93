package import HTTPTypes

extension HTTPFields {
    /// The same as the subscript, in one pass over the fields where one at most has the name.
    package func value(of name: HTTPField.Name) -> String? {
        var found: String?
        for field in self where field.name == name {
            guard found == nil else { return self[name] }
            found = field.value
        }
        return found
    }
}
