public import HTTPTypes

/// The stored responses that a successful unsafe request invalidates (RFC 9111 §4.4).
public enum Invalidation {
    /// The URIs of the stored responses to invalidate.
    ///
    /// The target itself, and `Location` and `Content-Location` if they have the same origin;
    /// otherwise any server could invalidate the responses of another.
    ///
    /// - Parameters:
    ///   - method: the method of the request; unknown methods are unsafe.
    ///   - target: the target of the request.
    ///   - status: the status of the response; an error invalidates nothing.
    ///   - fields: the fields of the response.
    /// - Returns: the URIs, the target first; empty if nothing is invalidated.
    public static func targets(
        method: HTTPRequest.Method,
        target: TargetURI,
        status: Int,
        fields: HTTPFields
    ) -> [TargetURI] {
        // RFC 9111 §4.4: a non-error response has a status of 2xx or 3xx.
        guard !isSafe(method), (200...399).contains(status) else { return [] }
        var targets = [target.withoutUserinfo]
        for name: HTTPField.Name in [.location, .contentLocation] {
            guard let reference = fields[name],
                let other = resolve(reference, against: target), other.origin == target.origin,
                !targets.contains(other)
            else { continue }
            targets.append(other)
        }
        return targets
    }

    /// Whether a method promises to change nothing (RFC 9110 §9.2.1).
    public static func isSafe(_ method: HTTPRequest.Method) -> Bool {
        switch method.rawValue {
        // QUERY: draft-ietf-httpbis-safe-method-w-body.
        case "GET", "HEAD", "OPTIONS", "TRACE", "QUERY": true
        default: false
        }
    }

    /// The target of a reference; nil for an invalid one, which cannot be stored.
    private static func resolve(_ reference: String, against target: TargetURI) -> TargetURI? {
        do throws(TargetURIError) {
            return try target.resolving(reference: reference).withoutUserinfo
        } catch {
            return nil
        }
    }
}
