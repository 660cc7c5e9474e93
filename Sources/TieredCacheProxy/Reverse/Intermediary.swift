import HTTPTypes

/// What an intermediary does to the fields that it passes on (RFC 9110 §7.6).
enum Intermediary {
    /// Adds this proxy to `Via`.
    ///
    /// - Parameters:
    ///   - fields: those of a request or a response.
    ///   - isHTTP10: whether the message came as HTTP/1.0.
    /// - Returns: the fields with the protocol and the pseudonym added at the end.
    static func addingVia(_ fields: HTTPFields, isHTTP10: Bool = false) -> HTTPFields {
        var fields = fields
        guard let via = HTTPField.Name("Via") else { return fields }
        let own = isHTTP10 ? "1.0 tieredcache" : "1.1 tieredcache"
        fields[via] = fields[via].map { "\($0), \(own)" } ?? own
        return fields
    }

    /// Whether a request ends here, because it may be forwarded no more (RFC 9110 §7.6.2).
    ///
    /// - Parameters:
    ///   - method: only TRACE and OPTIONS have the field.
    ///   - fields: the request's fields; `Max-Forwards` is counted down.
    /// - Returns: whether the next recipient is this one.
    static func endsHere(_ method: HTTPRequest.Method, _ fields: inout HTTPFields) -> Bool {
        guard method == .options || method == .trace,
            let name = HTTPField.Name("Max-Forwards"),
            let count = fields[name].flatMap({ UInt32($0) })
        else { return false }
        guard count > 0 else { return true }
        fields[name] = String(count - 1)
        return false
    }
}
