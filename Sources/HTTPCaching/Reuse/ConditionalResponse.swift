package import HTTPTypes

/// How a stored response answers a request with conditions and a range (RFC 9110 §13.2.2).
package enum ConditionalResponse: Hashable, Sendable {
    /// The whole stored response.
    case whole
    /// These bytes of it, as a 206.
    case partial(Range<Int64>)
    /// The client has the representation already: 304.
    case notModified
    /// The requested range does not exist: 416.
    case rangeNotSatisfiable
    /// A condition that only the origin can evaluate.
    case forOrigin

    /// Evaluates the conditions and the range of a GET or HEAD request, in the order that
    /// RFC 9110 §13.2.2 prescribes.
    ///
    /// Conditions and ranges apply to a 200; any other stored status is sent as it is. A range of a
    /// representation of unknown length gets the whole representation, as do several ranges.
    ///
    /// - Parameters:
    ///   - method: the request's method; `Range` applies to GET only.
    ///   - request: the request's fields.
    ///   - stored: the response that the request selected.
    ///   - completeLength: the length of its body, if it is known.
    /// - Returns: the response to send.
    package static func decide(
        method: HTTPRequest.Method,
        request: HTTPFields,
        stored: StoredResponse,
        completeLength: Int64?
    ) -> ConditionalResponse {
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
    /// - Parameter fields: the fields that the 200 would have.
    /// - Returns: the fields that the client needs for its own copy.
    package static func notModifiedFields(_ fields: HTTPFields) -> HTTPFields {
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
