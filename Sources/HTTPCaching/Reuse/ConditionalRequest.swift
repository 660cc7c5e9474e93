public import HTTPTypes

/// The fields that ask whether a stored response is still good (RFC 9111 §4.3.1).
public enum ConditionalRequest {
    /// `If-None-Match` and `If-Modified-Since` for a stored response.
    ///
    /// The values are sent back as they were received, a weak or malformed tag too: the origin
    /// compares with what it wrote.
    ///
    /// - Parameter storedFields: the stored response's fields.
    /// - Returns: the fields to add to the request; none if there is no validator.
    public static func fields(validating storedFields: HTTPFields) -> HTTPFields {
        var fields = HTTPFields()
        fields[.ifNoneMatch] = storedFields[.eTag]
        fields[.ifModifiedSince] = storedFields[.lastModified]
        return fields
    }

    /// The condition that offers several stored responses, none of which the request selects
    /// (RFC 9111 §4.1, §4.3.1).
    ///
    /// - Parameter storedFields: the fields of each; those without an `ETag` are not offered.
    /// - Returns: `If-None-Match` with all their tags.
    public static func fields(selectingAmong storedFields: [HTTPFields]) -> HTTPFields {
        var tags: [String] = []
        for fields in storedFields {
            if let tag = fields[.eTag], !tags.contains(tag) { tags.append(tag) }
        }
        var fields = HTTPFields()
        fields[.ifNoneMatch] = tags.isEmpty ? nil : tags.joined(separator: ", ")
        return fields
    }

    /// Takes away the conditions that an application put into its own request.
    ///
    /// They are about what the application holds, and must not reach the origin beside ours:
    /// a 304 would not tell which of the two it is about.
    public static func removingConditions(from fields: HTTPFields) -> HTTPFields {
        var fields = fields
        for name: HTTPField.Name in [.ifNoneMatch, .ifModifiedSince, .ifRange] {
            fields[name] = nil
        }
        return fields
    }
}
