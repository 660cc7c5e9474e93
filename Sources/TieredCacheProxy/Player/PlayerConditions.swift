import HTTPCaching
import HTTPTypes

/// The conditions and the range of a player's request, evaluated against the proxy's response.
///
/// Compares with the proxy's own tag (RFC 9110 §13.1), in the order of RFC 9110 §13.2.2.
struct PlayerConditions: Sendable {
    /// The result of the evaluation.
    enum Outcome: Hashable, Sendable {
        /// Send the response: the range if there is one, else the whole representation.
        case answer
        /// Send the whole representation: the range does not apply to it.
        case answerWhole
        /// Send 304.
        case notModified
        /// Send 412.
        case failed
    }

    /// The requested range; nil also for several ranges, which get the whole representation.
    let range: ByteRangeSpec?

    private let fields: HTTPFields
    /// Whether the request has any condition.
    let hasConditions: Bool

    /// Reads a request.
    ///
    /// - Parameters:
    ///   - fields: its fields.
    ///   - isHead: whether the method is HEAD, for which `Range` is ignored (RFC 9110 §14.2).
    init(_ fields: HTTPFields, isHead: Bool) {
        self.fields = fields
        let asked = isHead ? nil : fields[.range].flatMap { RangeRequest($0) }
        range = asked?.specs.count == 1 ? asked?.specs.first : nil
        hasConditions = [
            HTTPField.Name.ifMatch, .ifNoneMatch, .ifModifiedSince, .ifUnmodifiedSince, .ifRange,
        ].contains { fields.contains($0) }
    }

    /// Evaluates the conditions.
    ///
    /// - Parameters:
    ///   - tag: the proxy's tag of the representation, or nil.
    ///   - lastModified: its `Last-Modified`, or nil.
    ///   - now: the present, to interpret years of two digits.
    /// - Returns: the result.
    func outcome(tag: EntityTag?, lastModified: String?, now: WallTime) -> Outcome {
        guard hasConditions else { return .answer }
        let modified = lastModified.flatMap { HTTPDate.parse($0, now: now) }
        if let condition = fields[.ifMatch] {
            guard EntityTagList(condition).stronglyMatches(tag) else { return .failed }
        } else if let since = date(of: .ifUnmodifiedSince, now: now), let modified, modified > since
        {
            return .failed
        }
        if let condition = fields[.ifNoneMatch] {
            if EntityTagList(condition).weaklyMatches(tag) { return .notModified }
        } else if let since = date(of: .ifModifiedSince, now: now), let modified, modified <= since
        {
            return .notModified
        }
        return rangeApplies(tag: tag, lastModified: lastModified) ? .answer : .answerWhole
    }

    private func rangeApplies(tag: EntityTag?, lastModified: String?) -> Bool {
        guard let condition = fields[.ifRange] else { return true }
        if let asked = EntityTag(condition) {
            return tag.map { $0.stronglyMatches(asked) } ?? false
        }
        // A date is a valid condition too: it belongs to a generation, as the strong tag does.
        return lastModified.map { $0.utf8.elementsEqual(condition.utf8) } ?? false
    }

    private func date(of name: HTTPField.Name, now: WallTime) -> WallTime? {
        fields[name].flatMap { HTTPDate.parse($0, now: now) }
    }
}
