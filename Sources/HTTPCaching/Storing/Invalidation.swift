public import HTTPTypes

/// What a successful unsafe request makes unusable (RFC 9111 §4.4).
public enum Invalidation {
    /// The URIs whose stored responses are to be invalidated.
    ///
    /// The target itself, and `Location` and `Content-Location` where they have the same origin:
    /// otherwise anybody could empty the cache of somebody else.
    ///
    /// - Parameters:
    ///   - method: the method of the request; one that is not known to be safe is unsafe.
    ///   - target: what the request was made for.
    ///   - status: the status of the response; an error invalidates nothing.
    ///   - fields: the fields of the response.
    /// - Returns: the URIs, the target first; empty if nothing is invalidated.
    public static func targets(
        method: HTTPRequest.Method,
        target: TargetURI,
        status: Int,
        fields: HTTPFields
    ) -> [TargetURI] {
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
        case "GET", "HEAD", "OPTIONS", "TRACE", "QUERY": true
        default: false
        }
    }

    /// A reference that leads nowhere names nothing that could be stored.
    private static func resolve(_ reference: String, against target: TargetURI) -> TargetURI? {
        do throws(TargetURIError) {
            return try target.resolving(reference: reference).withoutUserinfo
        } catch {
            return nil
        }
    }
}
