import HTTPTypes

/// What an intermediary does to the fields that it passes on (RFC 9110 §7.6).
package enum Intermediary {
    /// Adds this proxy to `Via`.
    ///
    /// - Parameters:
    ///   - fields: those of a request or a response.
    ///   - isHTTP10: whether the message came as HTTP/1.0.
    ///   - name: what the proxy calls itself.
    /// - Returns: the fields with the protocol and the pseudonym added at the end.
    static func addingVia(
        _ fields: HTTPFields,
        isHTTP10: Bool = false,
        as name: String = "tieredcache"
    ) -> HTTPFields {
        var fields = fields
        guard let via = HTTPField.Name("Via") else { return fields }
        let own = (isHTTP10 ? "1.0 " : "1.1 ") + name
        fields[via] = fields[via].map { "\($0), \(own)" } ?? own
        return fields
    }

    /// The name of one running proxy, by which it knows its own requests (RFC 9110 §7.6.3).
    ///
    /// Two of this kind behind each other are no loop, so it is another one for each start.
    package struct Pseudonym: Hashable, Sendable {
        package let name =
            "tieredcache-" + ProxyAddress.hexadecimal(UInt64.random(in: .min ... .max))

        /// Adds this proxy to `Via` of a request.
        func addingVia(_ fields: HTTPFields, isHTTP10: Bool = false) -> HTTPFields {
            Intermediary.addingVia(fields, isHTTP10: isHTTP10, as: name)
        }

        /// Whether a request has been here before.
        ///
        /// - Parameter via: its field `Via`; nil where it has none.
        /// - Returns: whether this proxy stands in it.
        func isNamed(in via: String?) -> Bool {
            guard let via else { return false }
            // It is long enough to be nothing else wherever it stands.
            return via.firstRange(of: name) != nil
        }
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
