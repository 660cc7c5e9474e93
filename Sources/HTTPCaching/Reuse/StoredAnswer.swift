public import HTTPTypes

/// How a stored response answers a request: whole, in part, or not at all (RFC 9110 §13.2.2).
public enum StoredAnswer: Hashable, Sendable {
    /// As it is stored.
    case whole
    /// These bytes of it, as a 206.
    case partial(Range<Int64>)
    /// The requester has it already: 304.
    case notModified
    /// The range asked for does not exist: 416.
    case rangeNotSatisfiable
    /// A condition that only the origin can evaluate.
    case forOrigin

    /// Evaluates the conditions and the range of a GET or HEAD request, in the order that
    /// RFC 9110 §13.2.2 prescribes.
    ///
    /// Conditions and ranges are about a 200; any other stored status is the answer as it is. A
    /// range of a representation whose length is not known is answered with all of it, as are
    /// several ranges.
    ///
    /// - Parameters:
    ///   - method: the request's method; `Range` has a meaning for GET alone.
    ///   - request: the request's fields.
    ///   - stored: the response that the request selected.
    ///   - completeLength: the length of its body, if it is known.
    /// - Returns: what to answer.
    public static func decide(
        method: HTTPRequest.Method,
        request: HTTPFields,
        stored: StoredResponse,
        completeLength: Int64?
    ) -> StoredAnswer {
        guard stored.status == 200 else { return .whole }
        let condition = Precondition.evaluate(
            request: request,
            storedFields: stored.fields,
            stored: stored.facts
        )
        switch condition {
        case .forOrigin: return .forOrigin
        case .notModified: return .notModified
        case .passes: break
        }
        guard method == .get, let text = request[.range], let asked = RangeRequest(text),
            Precondition.rangeApplies(request: request, validator: stored.validator),
            let completeLength
        else { return .whole }
        switch asked.resolution(completeLength: completeLength) {
        case .partial(let range): return .partial(range)
        case .whole: return .whole
        case .unsatisfiable: return .rangeNotSatisfiable
        }
    }

    /// The fields of a 304 for a stored response (RFC 9110 §15.4.5).
    ///
    /// - Parameter fields: what the 200 would have carried.
    /// - Returns: those that tell the requester about its own copy.
    public static func notModifiedFields(_ fields: HTTPFields) -> HTTPFields {
        var kept = HTTPFields()
        for field in fields where tellsAboutCopy(field.name) {
            kept.append(field)
        }
        return kept
    }

    private static func tellsAboutCopy(_ name: HTTPField.Name) -> Bool {
        switch name {
        case .age, .cacheControl, .contentLocation, .date, .eTag, .expires, .lastModified, .vary:
            true
        default: false
        }
    }
}
