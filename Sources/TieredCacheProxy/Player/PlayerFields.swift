import HTTPCaching
import HTTPTypes
import TieredCache

/// The fields of an answer to a player.
enum PlayerFields {
    /// The fields that come through: what a player, or a page that plays, may need to know.
    ///
    /// Everything else says something about the origin's connection, its other addresses, its user
    /// agent's state or its own pages, none of which hold for the proxy's address, where it might
    /// make a browser do something, or tell the token.
    private static let relayed: Set<String> = [
        "access-control-allow-credentials", "access-control-allow-origin",
        "access-control-expose-headers", "age", "cache-control", "cache-status",
        "content-disposition", "content-language", "content-type", "contentfeatures.dlna.org",
        "date", "expires", "last-modified", "pragma", "retry-after", "timing-allow-origin",
        "transfermode.dlna.org", "x-content-duration",
    ]
    /// Internet radio says so what is played.
    private static let radioPrefix = "icy-"

    /// What makes an answer inert in a browser, whatever its bytes are.
    ///
    /// As a document it is in a sandbox, an origin of its own without scripts, forms and plug-ins,
    /// and loads nothing but itself as a film or a picture; its type is what it says; and links out
    /// of it do not tell where it was.
    static let inert: HTTPFields = {
        let values: KeyValuePairs = [
            "Content-Security-Policy":
                "sandbox; default-src 'none'; media-src 'self'; img-src 'self'; "
                + "style-src 'unsafe-inline'; base-uri 'none'; form-action 'none'",
            "X-Content-Type-Options": "nosniff",
            "Referrer-Policy": "no-referrer",
        ]
        var fields = HTTPFields()
        for (name, value) in values {
            guard let name = HTTPField.Name(name) else { continue }
            fields[name] = value
        }
        return fields
    }()

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
        for field in StoredFields.endToEnd(response) {
            let name = field.name.canonicalName
            guard relayed.contains(name) || name.hasPrefix(radioPrefix) else { continue }
            fields.append(field)
        }
        fields.append(contentsOf: inert)
        fields[.eTag] = tag?.description
        fields[.acceptRanges] = acceptsRanges ? "bytes" : nil
        if let name = HTTPField.Name("Cache-Status") {
            fields.append(HTTPField(name: name, value: status.fieldValue))
        }
        return fields
    }
}
