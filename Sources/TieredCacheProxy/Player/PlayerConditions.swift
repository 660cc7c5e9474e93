import HTTPCaching
import HTTPTypes

/// The conditions and the range of a player's request, against what the proxy would answer.
///
/// The tag is the proxy's own (RFC 9110 §13.1). Evaluated in the order of RFC 9110 §13.2.2.
struct PlayerConditions: Sendable {
    /// What comes of them.
    enum Outcome: Hashable, Sendable {
        /// The answer is sent: the range if there is one, else everything.
        case answer
        /// The answer is sent, but the range does not apply to this representation.
        case answerWhole
        /// 304.
        case notModified
        /// 412.
        case failed
    }

    /// The single range asked for; several are answered with everything.
    let range: ByteRangeSpec?

    private let fields: HTTPFields
    /// Whether there is any condition.
    let hasConditions: Bool

    /// Reads a request.
    ///
    /// - Parameters:
    ///   - fields: its fields.
    ///   - isHead: whether it is a HEAD, for which `Range` means nothing (RFC 9110 §14.2).
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
    ///   - now: the present, for dates with two digits of a year.
    /// - Returns: what is to be done.
    func outcome(tag: EntityTag?, lastModified: String?, now: WallTime) -> Outcome {
        guard hasConditions else { return .answer }
        let modified = lastModified.flatMap { HTTPDate.parse($0, now: now) }
        if let condition = fields[.ifMatch] {
            guard EntityTagList(condition).stronglyMatches(tag) else { return .failed }
        } else if let since = date(.ifUnmodifiedSince, now), let modified, modified > since {
            return .failed
        }
        if let condition = fields[.ifNoneMatch] {
            if EntityTagList(condition).weaklyMatches(tag) { return .notModified }
        } else if let since = date(.ifModifiedSince, now), let modified, modified <= since {
            return .notModified
        }
        return rangeApplies(tag: tag, lastModified: lastModified) ? .answer : .answerWhole
    }

    private func rangeApplies(tag: EntityTag?, lastModified: String?) -> Bool {
        guard let condition = fields[.ifRange] else { return true }
        if let asked = EntityTag(condition) {
            return tag.map { $0.stronglyMatches(asked) } ?? false
        }
        // A date is a validator here as well: the tag of a generation is strong, so is the date
        // that goes with it.
        return lastModified.map { $0.utf8.elementsEqual(condition.utf8) } ?? false
    }

    private func date(_ name: HTTPField.Name, _ now: WallTime) -> WallTime? {
        fields[name].flatMap { HTTPDate.parse($0, now: now) }
    }
}
