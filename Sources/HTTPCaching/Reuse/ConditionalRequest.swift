public import HTTPTypes

/// The fields of a conditional request for validation (RFC 9111 §4.3.1).
public enum ConditionalRequest {
    /// `If-None-Match` and `If-Modified-Since` for a stored response.
    ///
    /// The values are sent back as received, even weak or malformed tags, because the origin
    /// compares them with its own.
    ///
    /// - Parameter storedFields: the stored response's fields.
    /// - Returns: the fields to add to the request; none if there is no validator.
    public static func fields(validating storedFields: HTTPFields) -> HTTPFields {
        var fields = HTTPFields()
        fields[.ifNoneMatch] = storedFields[.eTag]
        fields[.ifModifiedSince] = storedFields[.lastModified]
        return fields
    }

    /// `If-None-Match` for several stored responses, none of which the request selects (RFC 9111
    /// §4.1, §4.3.1).
    ///
    /// - Parameter storedFields: the fields of each response; those without an `ETag` are skipped.
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

    /// Removes the conditions that an application has put into its request.
    ///
    /// They concern the application's own copy and must not be sent with the cache's conditions: a
    /// 304 would not show which of the two it is about.
    public static func removingConditions(from fields: HTTPFields) -> HTTPFields {
        var fields = fields
        for name: HTTPField.Name in [.ifNoneMatch, .ifModifiedSince, .ifRange] {
            fields[name] = nil
        }
        return fields
    }
}
