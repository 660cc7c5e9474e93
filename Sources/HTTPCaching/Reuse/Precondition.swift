public import HTTPTypes

/// The result of the conditions that a cache evaluates itself (RFC 9111 §4.3.2, RFC 9110 §13.2).
///
/// `If-Match` and `If-Unmodified-Since` are for the origin alone; a request with one of them is
/// forwarded.
public enum Precondition: Hashable, Sendable {
    /// The stored response is sent.
    case passes
    /// The client has the representation already: 304.
    case notModified
    /// Only the origin can evaluate the conditions.
    case forOrigin

    /// Evaluates the conditions of a GET or HEAD request against a stored response.
    ///
    /// `If-None-Match` precedes `If-Modified-Since`, which is compared with `Last-Modified`, or
    /// with `Date` if there is none; an invalid date is ignored.
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

    /// Whether `If-Range` allows the `Range` of a request to apply (RFC 9110 §13.1.5).
    ///
    /// Compares tags strongly and dates exactly; false without a strong validator.
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
