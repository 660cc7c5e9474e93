public import HTTPTypes

/// A stored 206 that stands by itself, because nothing may be joined to it (RFC 9111 §3.4).
///
/// A part without a strong validator, or one of which only the origin knew where it lies, answers
/// requests for bytes inside it and no others (§3.3). It is kept as it came, with `Content-Range`.
public struct StandalonePart: Hashable, Sendable {
    /// Which bytes of the representation it has.
    ///
    /// nil where `Content-Range` says something else than the length of what came, or nothing:
    /// which bytes these are only who asked can tell, so only the very same request is answered
    /// with them.
    public let range: Range<Int64>?
    /// The length of the whole representation, if the origin has told.
    public let completeLength: Int64?

    /// Reads the fields of a 206.
    ///
    /// - Parameters:
    ///   - fields: as received or as stored.
    ///   - length: how many bytes its body has.
    public init(fields: HTTPFields, length: Int64) {
        guard case .bytes(let range, let completeLength) = Self.contentRange(of: fields),
            Int64(range.count) == length
        else {
            (self.range, self.completeLength) = (nil, nil)
            return
        }
        (self.range, self.completeLength) = (range, completeLength)
    }

    /// Whether a response may be kept as a part by itself.
    ///
    /// - Parameters:
    ///   - response: what it says about caching.
    ///   - request: what the request says.
    ///   - rules: whose cache this is.
    /// - Returns: false also where it would never be fresh, since nothing validates it.
    public static func isStorable(
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

    /// The bytes of the representation that a range means, if all of them are in this part.
    public func bytes(for spec: ByteRangeSpec) -> Range<Int64>? {
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

    /// A field that cannot be read says as much as none.
    private static func contentRange(of fields: HTTPFields) -> ContentRange? {
        do throws(FieldSyntaxError) {
            return try ContentRange.parse(in: fields)
        } catch {
            return nil
        }
    }
}
