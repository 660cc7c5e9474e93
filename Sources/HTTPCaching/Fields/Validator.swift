public import HTTPTypes

/// A strong validator, which guarantees that bytes of two responses belong to one representation
/// (RFC 9110 §8.8.1).
///
/// Required to resume a download and to combine ranges. The field value is sent back verbatim,
/// because some origins compare it as text.
public struct Validator: Hashable, Sendable {
    /// Where the validator comes from.
    public enum Kind: Hashable, Sendable {
        /// A strong `ETag`.
        case entityTag(EntityTag)
        /// A `Last-Modified` at least a second older than the response (RFC 9110 §8.8.2.2).
        case lastModified
    }

    /// Where the validator comes from.
    public let kind: Kind
    /// The field value as received, for `If-Range`.
    public let fieldValue: String

    /// The value of `If-Range` (RFC 9110 §13.1.5).
    public var ifRangeValue: String { fieldValue }

    /// The strong validator of a response, or nil if it has none.
    ///
    /// A response with a weak or malformed entity tag has none, whatever its `Last-Modified`: RFC
    /// 9110 §13.1.5 allows a date only without a tag. Without a `Date`, the time of receipt is used
    /// instead, and the difference must be a minute, because two clocks are compared.
    ///
    /// - Parameters:
    ///   - fields: the response's header fields.
    ///   - responseTime: when the response was received.
    public init?(of fields: HTTPFields, responseTime: WallTime) {
        if let text = fields.value(of: .eTag) {
            guard let tag = EntityTag(text), !tag.isWeak else { return nil }
            self.init(kind: .entityTag(tag), fieldValue: text)
            return
        }
        guard let text = fields.value(of: .lastModified),
            let modified = HTTPDate.parse(text, now: responseTime)
        else { return nil }
        let date = fields.value(of: .date).flatMap { HTTPDate.parse($0, now: responseTime) }
        let distance: Duration = date == nil ? .seconds(60) : .seconds(1)
        guard modified.duration(to: date ?? responseTime) >= distance else { return nil }
        self.init(kind: .lastModified, fieldValue: text)
    }

    private init(kind: Kind, fieldValue: String) {
        self.kind = kind
        self.fieldValue = fieldValue
    }

    /// How another response's validator relates to this one.
    public enum Comparison: Hashable, Sendable {
        /// The response has the same validator.
        case same
        /// The response has no field of this kind; only `If-Range` or `If-Match` in the request
        /// guarantees a match.
        case absent
        /// The response belongs to another representation.
        case different
    }

    /// Compares with the field of the same kind in another response, a 206 for example.
    ///
    /// Entity tags are compared strongly, so a weak one always differs; dates as texts.
    public func comparison(with fields: HTTPFields) -> Comparison {
        switch kind {
        case .entityTag(let tag):
            guard let text = fields[.eTag] else { return .absent }
            return EntityTag(text).map(tag.stronglyMatches) ?? false ? .same : .different
        case .lastModified:
            guard let text = fields[.lastModified] else { return .absent }
            return text.utf8.elementsEqual(fieldValue.utf8) ? .same : .different
        }
    }
}
