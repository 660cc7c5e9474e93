package import HTTPCaching

/// How the URL that answers is related to the one that gave what is stored, both behind redirects.
///
/// A validator tells apart the representations of one resource (RFC 9110 §8.8.3), and a redirect
/// that led to one resource may lead to another now, with the same revision number for a tag. So a
/// validator counts for the URL that gave it. Anywhere else stored bytes have to come again, and be
/// the same, before others are joined to them.
package enum ResourceRelation: Hashable, Sendable {
    /// The same URL.
    case same
    /// The same but for the query, as where a signature rotates: the validator still counts, and
    /// what can be compared is.
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
    /// Whether two heads are of one resource: the URLs that answered are the same, query apart.
    func isOfSameResource(as other: StoredResponse) -> Bool {
        let (own, others) = (
            origin.finalURL ?? origin.url, other.origin.finalURL ?? other.origin.url
        )
        guard own != others else { return true }
        guard let target = finalTarget, let known = other.finalTarget else { return false }
        return target.relation(to: known) != .other
    }
}
