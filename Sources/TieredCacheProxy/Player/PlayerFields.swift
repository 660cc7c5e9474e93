import HTTPCaching
import HTTPTypes
import TieredCache

/// The fields of a response to a player.
enum PlayerFields {
    /// The fields that are passed on because a player, or a page with a player, may need them.
    ///
    /// All others concern the origin's connection, its other URLs, its state in the user agent or
    /// its pages. They are wrong for the proxy's URL, where they might trigger actions of a browser
    /// or reveal the token.
    private static let relayed: Set<String> = [
        "access-control-allow-credentials", "access-control-allow-origin",
        "access-control-expose-headers", "age", "cache-control", "cache-status",
        "content-disposition", "content-language", "content-type", "contentfeatures.dlna.org",
        "date", "expires", "last-modified", "pragma", "retry-after", "timing-allow-origin",
        "transfermode.dlna.org", "x-content-duration",
    ]
    /// Internet radio describes its programme in these fields.
    private static let radioPrefix = "icy-"

    /// The fields that make a response inert in a browser, whatever its bytes are.
    ///
    /// A document runs in a sandbox: an opaque origin without scripts, forms and plug-ins, which
    /// loads only itself as media or image. Browsers do not guess its type, and links in it do not
    /// reveal its URL.
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
    ///   - acceptsRanges: whether ranges can be requested, which needs a known length.
    ///   - status: how the cache handled the request.
    /// - Returns: the fields, without `Content-Length` and `Content-Range`.
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
