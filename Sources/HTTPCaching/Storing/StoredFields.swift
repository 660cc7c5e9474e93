package import HTTPTypes

/// Selects the fields of a response to store (RFC 9111 §3.1).
package enum StoredFields {
    /// The fields of `response` without those of its connection, and those that its cache
    /// directives forbid to store.
    ///
    /// `no-cache="..."` forbids reuse of the named fields without validation, `private="..."`
    /// forbids a shared cache to store them; neither are stored. Nor is `Set-Cookie` in a shared
    /// cache: it is meant for one client.
    ///
    /// - Parameters:
    ///   - response: the fields as received.
    ///   - rules: the rules of the cache.
    /// - Returns: the fields to store.
    package static func of(_ response: HTTPFields, rules: CacheRules) -> HTTPFields {
        let targeted = rules.isShared ? TargetedCacheControl.parse(response) : nil
        let control = targeted ?? ResponseCacheControl(in: response)
        var dropped = Set(connectionOptions(response)).union(control.noCacheFields)
        if rules.isShared {
            dropped.formUnion(control.privateFields)
            dropped.insert(HTTPField.Name.setCookie.canonicalName)
        }
        return keeping(response) { !isHopByHop($0) && !dropped.contains($0) }
    }

    /// The fields of the whole representation, derived from those of a 206.
    ///
    /// Removes `Content-Range`, and the digests of the part; sets `Content-Length` to the complete
    /// length, or removes it if that is unknown. Store the fields with status 200 (RFC 9111 §3.4).
    ///
    /// - Parameters:
    ///   - response: the fields of the 206 as received.
    ///   - completeLength: the complete length in its `Content-Range`.
    ///   - rules: the rules of the cache.
    /// - Returns: the fields to store.
    package static func ofRepresentation(
        partial response: HTTPFields,
        completeLength: Int64?,
        rules: CacheRules
    ) -> HTTPFields {
        var fields = of(response, rules: rules)
        fields[.contentRange] = nil
        fields = keeping(fields) { !digestsOfContent.contains($0) }
        fields[.contentLength] = completeLength.map(String.init)
        return fields
    }

    /// `fields` without hop-by-hop fields (RFC 9110 §7.6.1), for storing and forwarding.
    ///
    /// `Trailer` is removed too, because trailers are not forwarded (§6.5.1).
    package static func endToEnd(_ fields: HTTPFields) -> HTTPFields {
        let options = Set(connectionOptions(fields))
        return keeping(fields) { !isHopByHop($0) && !options.contains($0) }
    }

    /// `Content-MD5` (RFC 1864) and `Content-Digest` (RFC 9530 §2): of the content of one message,
    /// which for a 206 is the part.
    private static let digestsOfContent: Set<String> = ["content-digest", "content-md5"]

    static func isDigestOfContent(_ name: HTTPField.Name) -> Bool {
        digestsOfContent.contains(name.canonicalName)
    }

    private static func keeping(
        _ fields: HTTPFields,
        where isKept: (String) -> Bool
    ) -> HTTPFields {
        // Most have nothing to drop, and are not copied.
        guard !fields.allSatisfy({ isKept($0.name.canonicalName) }) else { return fields }
        var kept = HTTPFields()
        for field in fields where isKept(field.name.canonicalName) {
            kept.append(field)
        }
        return kept
    }

    /// The field names in `Connection`.
    private static func connectionOptions(_ fields: HTTPFields) -> [String] {
        fields.value(of: .connection).map(FieldNameList.parse) ?? []
    }

    private static func isHopByHop(_ name: String) -> Bool {
        switch name {
        // RFC 9110 §7.6.1, and what is between client and proxy alone (RFC 9111 §3.1).
        case "connection", "keep-alive", "proxy-authenticate", "proxy-authentication-info",
            "proxy-authorization", "proxy-connection", "te", "trailer", "transfer-encoding",
            "upgrade":
            true
        default: false
        }
    }
}
