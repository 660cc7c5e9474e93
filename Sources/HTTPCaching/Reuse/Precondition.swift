public import HTTPTypes

/// The conditions of a request that a cache answers itself (RFC 9111 §4.3.2, RFC 9110 §13.2).
///
/// `If-Match` and `If-Unmodified-Since` are for the origin alone; a request with one of them is
/// forwarded.
public enum Precondition: Hashable, Sendable {
    /// The stored response is the answer.
    case passes
    /// The requester has it already: 304.
    case notModified
    /// Only the origin can tell.
    case forOrigin

    /// Evaluates a GET or HEAD request against the stored response that would answer it.
    ///
    /// `If-None-Match` goes before `If-Modified-Since`, which is compared with `Last-Modified`,
    /// else with `Date`; a condition that is no date is ignored.
    public static func evaluate(
        request: HTTPFields,
        storedFields: HTTPFields,
        stored: ResponseFacts
    ) -> Precondition {
        guard !request.contains(.ifMatch), !request.contains(.ifUnmodifiedSince) else {
            return .forOrigin
        }
        if let condition = request[.ifNoneMatch] {
            let tag = storedFields[.eTag].flatMap { EntityTag($0) }
            return EntityTagList(condition).weaklyMatches(tag) ? .notModified : .passes
        }
        guard let condition = request[.ifModifiedSince],
            let since = HTTPDate.parse(condition, now: stored.responseTime)
        else { return .passes }
        return stored.lastModified ?? stored.date <= since ? .notModified : .passes
    }

    /// Whether the `Range` of a request applies, as far as its `If-Range` tells (RFC 9110 §13.1.5).
    ///
    /// A tag is compared strongly, a date exactly; only a strong validator passes.
    public static func rangeApplies(request: HTTPFields, validator: Validator?) -> Bool {
        guard let condition = request[.ifRange] else { return true }
        guard let validator else { return false }
        switch validator.kind {
        case .entityTag(let tag):
            return EntityTag(condition).map(tag.stronglyMatches) ?? false
        case .lastModified:
            return condition.utf8.elementsEqual(validator.fieldValue.utf8)
        }
    }
}
