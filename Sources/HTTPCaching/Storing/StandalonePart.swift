package import HTTPTypes

/// A stored 206 that must not be combined with others (RFC 9111 §3.4).
///
/// It has no strong validator, or its position is unknown, and answers only requests for bytes
/// inside it (§3.3). It is stored as received, with `Content-Range`.
package struct StandalonePart: Hashable, Sendable {
    /// The range of its bytes in the representation.
    ///
    /// nil if `Content-Range` is missing or contradicts the length of the body. The position is
    /// unknown then, so only an identical request is answered with it.
    package let range: Range<Int64>?
    /// The length of the whole representation; nil if the origin has not given it.
    package let completeLength: Int64?

    /// Reads the fields of a 206.
    ///
    /// - Parameters:
    ///   - fields: the fields, as received or as stored.
    ///   - length: the length of its body in bytes.
    package init(fields: HTTPFields, length: Int64) {
        guard case .bytes(let range, let completeLength) = Self.contentRange(of: fields),
            Int64(range.count) == length
        else {
            (self.range, self.completeLength) = (nil, nil)
            return
        }
        (self.range, self.completeLength) = (range, completeLength)
    }

    /// Whether a response may be stored as a standalone part.
    ///
    /// - Parameters:
    ///   - response: the caching properties of the response.
    ///   - request: the caching properties of the request.
    ///   - rules: the rules of the cache.
    /// - Returns: whether it may be stored; false also if it would never be fresh, because it
    ///   cannot be validated.
    package static func isStorable(
        _ response: ResponseFacts,
        request: RequestFacts,
        rules: CacheRules
    ) -> Bool {
        guard response.status == 206,
            FreshnessLifetime(of: response, rules: rules).duration > .zero
        else { return false }
        let storability = Storability.decide(
            response: response,
            request: request,
            canCombine: true,
            rules: rules
        )
        return storability == .storable
    }

    /// The bytes that a range selects, if all of them are in this part; otherwise nil.
    package func bytes(for spec: ByteRangeSpec) -> Range<Int64>? {
        guard let range else { return nil }
        let wanted: Range<Int64>?
        if let completeLength {
            wanted = spec.resolved(completeLength: completeLength)
        } else if case .bounded(let bounds) = spec {
            wanted = bounds
        } else {
            wanted = nil
        }
        guard let wanted, range.lowerBound <= wanted.lowerBound,
            wanted.upperBound <= range.upperBound
        else { return nil }
        return wanted
    }

    /// The value of `Content-Range`; nil also for a malformed one.
    private static func contentRange(of fields: HTTPFields) -> ContentRange? {
        do throws(FieldSyntaxError) {
            return try ContentRange.parse(in: fields)
        } catch {
            return nil
        }
    }
}
