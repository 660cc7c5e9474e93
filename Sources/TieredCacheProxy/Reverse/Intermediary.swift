import HTTPTypes

/// The changes that an intermediary makes to forwarded fields (RFC 9110 §7.6).
package enum Intermediary {
    /// Adds this proxy to `Via`.
    ///
    /// - Parameters:
    ///   - fields: the fields of a request or a response.
    ///   - isHTTP10: whether the message was received as HTTP/1.0.
    ///   - name: the pseudonym of the proxy.
    /// - Returns: the fields with protocol and pseudonym appended.
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

    /// The name of one running proxy, by which it detects its own requests (RFC 9110 §7.6.3).
    ///
    /// Random for each start, because two chained proxies of this kind are no loop.
    package struct Pseudonym: Hashable, Sendable {
        package let name =
            "tieredcache-" + ProxyAddress.hexadecimal(UInt64.random(in: .min ... .max))

        /// Adds this proxy to `Via` of a request.
        func addingVia(_ fields: HTTPFields, isHTTP10: Bool = false) -> HTTPFields {
            Intermediary.addingVia(fields, isHTTP10: isHTTP10, as: name)
        }

        /// Whether a request has passed through this proxy before.
        ///
        /// - Parameter via: the `Via` field; nil if there is none.
        /// - Returns: whether the field names this proxy.
        func isNamed(in via: String?) -> Bool {
            guard let via else { return false }
            // The name is long enough not to occur by accident.
            return via.firstRange(of: name) != nil
        }
    }

    /// Whether a request must not be forwarded, because `Max-Forwards` is 0 (RFC 9110 §7.6.2).
    ///
    /// - Parameters:
    ///   - method: the method; the field applies to TRACE and OPTIONS only.
    ///   - fields: the fields of the request; `Max-Forwards` is decremented.
    /// - Returns: whether this proxy is the final recipient.
    static func endsHere(method: HTTPRequest.Method, fields: inout HTTPFields) -> Bool {
        guard method == .options || method == .trace,
            let name = HTTPField.Name("Max-Forwards"),
            let count = fields[name].flatMap({ UInt32($0) })
        else { return false }
        guard count > 0 else { return true }
        fields[name] = String(count - 1)
        return false
    }
}
