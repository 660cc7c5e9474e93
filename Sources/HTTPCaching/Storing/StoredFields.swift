public import HTTPTypes

/// Which fields of a response are stored (RFC 9111 §3.1).
public enum StoredFields {
    /// The fields of `response` without those that concern only the connection it came over, and
    /// those that its cache directives forbid to keep.
    ///
    /// `no-cache="..."` forbids to reuse the fields it names without validation, `private="..."`
    /// forbids a shared cache to store them; neither is stored. Nor is `Set-Cookie` in a shared
    /// cache: it was for the client that had asked.
    ///
    /// - Parameters:
    ///   - response: the fields as received.
    ///   - rules: whose cache this is.
    /// - Returns: the fields to store.
    public static func of(_ response: HTTPFields, rules: CacheRules) -> HTTPFields {
        let targeted = rules.isShared ? TargetedCacheControl.parse(response) : nil
        let control = targeted ?? ResponseCacheControl(in: response)
        var dropped = Set(connectionOptions(response)).union(control.noCacheFields)
        if rules.isShared {
            dropped.formUnion(control.privateFields)
            dropped.insert(HTTPField.Name.setCookie.canonicalName)
        }
        return keeping(response) { !isHopByHop($0) && !dropped.contains($0) }
    }

    /// The fields that describe the whole representation, from a 206 that brought a part of it.
    ///
    /// `Content-Range` goes; `Content-Length` becomes the complete length, or goes if nobody
    /// knows it. Store them with status 200 (RFC 9111 §3.4).
    ///
    /// - Parameters:
    ///   - response: the fields of the 206 as received.
    ///   - completeLength: the length that its `Content-Range` names.
    ///   - rules: whose cache this is.
    /// - Returns: the fields to store.
    public static func ofRepresentation(
        partial response: HTTPFields,
        completeLength: Int64?,
        rules: CacheRules
    ) -> HTTPFields {
        var fields = of(response, rules: rules)
        fields[.contentRange] = nil
        fields[.contentLength] = completeLength.map(String.init)
        return fields
    }

    /// `fields` without those that end at the next hop (RFC 9110 §7.6.1); for forwarding too.
    ///
    /// `Trailer` ends with the trailers that it announces, which are not handed on (§6.5.1).
    public static func endToEnd(_ fields: HTTPFields) -> HTTPFields {
        let options = Set(connectionOptions(fields))
        return keeping(fields) { !isHopByHop($0) && !options.contains($0) }
    }

    private static func keeping(
        _ fields: HTTPFields,
        where isKept: (String) -> Bool
    ) -> HTTPFields {
        var kept = HTTPFields()
        for field in fields where isKept(field.name.canonicalName) {
            kept.append(field)
        }
        return kept
    }

    /// The field names in `Connection`.
    private static func connectionOptions(_ fields: HTTPFields) -> [String] {
        fields[.connection].map(FieldNameList.parse) ?? []
    }

    private static func isHopByHop(_ name: String) -> Bool {
        switch name {
        case "connection", "keep-alive", "proxy-authenticate", "proxy-authentication-info",
            "proxy-authorization", "proxy-connection", "te", "trailer", "transfer-encoding",
            "upgrade":
            true
        default: false
        }
    }
}
