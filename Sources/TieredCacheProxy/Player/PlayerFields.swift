import HTTPCaching
import HTTPTypes
import TieredCache

/// The fields of an answer to a player.
enum PlayerFields {
    /// Fields that say something about the origin's connection, its other addresses or its user
    /// agent's state, none of which hold for the proxy's address; and those the proxy sets itself.
    private static let dropped: Set<String> = [
        "accept-ranges", "alt-svc", "clear-site-data", "content-encoding", "content-length",
        "content-location", "content-md5", "content-range", "digest", "etag", "link", "location",
        "nel", "public-key-pins", "refresh", "report-to", "repr-digest", "content-digest",
        "set-cookie", "strict-transport-security", "trailer", "vary", "via",
        "content-security-policy", "x-frame-options", "cross-origin-resource-policy",
        "cross-origin-opener-policy", "cross-origin-embedder-policy",
    ]

    /// The fields that describe the representation.
    ///
    /// - Parameters:
    ///   - response: the response's fields.
    ///   - tag: the proxy's tag.
    ///   - acceptsRanges: whether parts can be asked for: the length is known.
    ///   - status: what the cache did.
    /// - Returns: the fields, without length and range.
    static func of(
        _ response: HTTPFields,
        tag: EntityTag?,
        acceptsRanges: Bool,
        status: CacheStatus
    ) -> HTTPFields {
        var fields = HTTPFields()
        for field in StoredFields.endToEnd(response)
        where !dropped.contains(field.name.canonicalName) {
            fields.append(field)
        }
        fields[.eTag] = tag?.description
        fields[.acceptRanges] = acceptsRanges ? "bytes" : nil
        if let name = HTTPField.Name("Cache-Status") {
            fields.append(HTTPField(name: name, value: status.fieldValue))
        }
        return fields
    }
}
