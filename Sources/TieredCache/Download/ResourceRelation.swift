package import HTTPCaching

/// How the URL of a response is related to that of the stored one, both after redirects.
///
/// A validator distinguishes the representations of one resource (RFC 9110 §8.8.3), and a redirect
/// may lead to another resource by now, with the same revision number as its tag. So a validator
/// holds for the URL of its response. Elsewhere stored bytes have to come again, and be the same,
/// before others are combined with them.
package enum ResourceRelation: Hashable, Sendable {
    /// The same URL.
    case same
    /// The same except for the query, as with rotating signatures: the validator still holds, and
    /// bytes that can be compared are.
    case otherQuery
    /// Another origin or path: the validator proves nothing.
    case other
}

extension TargetURI {
    /// How this URL is related to another.
    package func relation(to other: TargetURI) -> ResourceRelation {
        guard origin == other.origin, path == other.path else { return .other }
        return query == other.query ? .same : .otherQuery
    }
}

extension StoredResponse {
    /// Whether two heads are of one resource: their final URLs are the same except for the query.
    func isOfSameResource(as other: StoredResponse) -> Bool {
        let (own, others) = (
            origin.finalURL ?? origin.url, other.origin.finalURL ?? other.origin.url
        )
        guard own != others else { return true }
        guard let target = finalTarget, let known = other.finalTarget else { return false }
        return target.relation(to: known) != .other
    }
}
