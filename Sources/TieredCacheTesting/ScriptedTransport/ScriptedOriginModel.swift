import HTTPCaching
import HTTPTypes
public import TieredCache

/// A model of an origin with one representation, which answers by RFC 9110 or breaks one rule.
public struct ScriptedOriginModel: Sendable {
    /// A way to break the rules, or to use one of their options, in the response to a range request.
    public enum Lie: String, CaseIterable, Sendable {
        /// All rules are kept.
        case none
        /// Answers 200 with the whole representation, as allowed.
        case ignoresRanges
        /// Answers a request without `Range` with a 206.
        case unsolicitedPart
        /// Sends less than the requested range, as allowed.
        case subset
        /// Does not give the complete length, as allowed.
        case starLength
        /// Starts at another offset, with the matching `Content-Range`.
        case shiftedRange
        /// Gives another complete length.
        case otherLength
        /// Gives another entity tag.
        case otherTag
        /// Gives no entity tag in a 206.
        case noTag
        /// Sends a 206 without `Content-Range`.
        case noContentRange
        /// Sends a `Content-Length` that contradicts the range.
        case otherPartLength
        /// Sends a multipart body for one range.
        case multipart
        /// Sends a part of a coded representation.
        case codedPart
        /// Answers 416 for bytes that exist.
        case unsatisfied
        /// Sends more bytes than the range has, in a chunked body.
        case extraBytes
    }

    /// The version of the representation, which determines bytes and validators.
    public var version: UInt8
    /// The length of the representation in bytes.
    public var length: Int
    /// The prefix of entity tags: empty for strong, `W/` for weak ones; nil for none.
    public var tagPrefix: String?
    /// The rule that is broken.
    public var lie: Lie
    /// The body bytes sent per chunk.
    public var chunkSize: Int
    /// The number of bytes after which the body fails; nil for never.
    public var cutAfter: Int?

    /// Creates an origin that keeps the rules.
    ///
    /// - Parameters:
    ///   - length: The length of the representation in bytes.
    ///   - version: The version of the representation.
    public init(length: Int, version: UInt8 = 1) {
        self.version = version
        self.length = length
        tagPrefix = ""
        lie = .none
        chunkSize = 1000
    }

    /// The bytes of a representation, by a pattern that depends on offset and version.
    public static func bytes(version: UInt8, range: Range<Int>) -> [UInt8] {
        range.map { UInt8(truncatingIfNeeded: ($0 &* 31) ^ ($0 >> 8) &+ Int(version) &* 101) }
    }

    /// The value of `ETag`; nil for none.
    public var entityTag: String? { tagPrefix.map { "\($0)\"v\(version)-\(length)\"" } }

    /// Answers a request.
    public func answer(_ request: TransportRequest) -> ScriptedResponse {
        let fields = request.head.headerFields
        if let tag = entityTag, fields[.ifNoneMatch] == tag {
            return ScriptedResponse(status: 304, fields: validators())
        }
        let asked = fields[.range].flatMap { RangeRequest($0)?.specs.first }
        guard let asked, lie != .ignoresRanges, isCurrent(fields[.ifRange]) else {
            return lie == .unsolicitedPart ? part(0..<length) : whole()
        }
        let range = asked.resolved(completeLength: Int64(length))
        guard let range, lie != .unsatisfied else {
            return ScriptedResponse(status: 416, fields: [.contentRange: "bytes */\(length)"])
        }
        return part(Int(range.lowerBound)..<Int(range.upperBound))
    }

    private func isCurrent(_ ifRange: String?) -> Bool {
        guard let ifRange else { return true }
        return tagPrefix == "" && ifRange == entityTag
    }

    private func validators() -> HTTPFields {
        var fields: HTTPFields = [.date: "Thu, 01 Jan 2026 00:00:00 GMT"]
        if let entityTag { fields[.eTag] = entityTag }
        return fields
    }

    private func whole() -> ScriptedResponse {
        var fields = validators()
        fields[.contentLength] = String(length)
        return ScriptedResponse(status: 200, fields: fields, steps: steps(0..<length))
    }

    private func part(_ asked: Range<Int>) -> ScriptedResponse {
        var range = asked
        if lie == .subset {
            range = asked.lowerBound..<min(asked.upperBound, asked.lowerBound + 700)
        }
        if lie == .shiftedRange, range.count > 1 { range = range.lowerBound + 1..<range.upperBound }
        let total = lie == .starLength ? "*" : String(lie == .otherLength ? length + 1 : length)
        var fields = validators()
        fields[.contentLength] = String(range.count)
        fields[.contentRange] = "bytes \(range.lowerBound)-\(range.upperBound - 1)/\(total)"
        var sent = range
        switch lie {
        case .otherTag: fields[.eTag] = "\"another\""
        case .noTag: fields[.eTag] = nil
        case .noContentRange: fields[.contentRange] = nil
        case .otherPartLength: fields[.contentLength] = String(range.count + 1)
        case .multipart: fields[.contentType] = "multipart/byteranges; boundary=x"
        case .codedPart: fields[.contentEncoding] = "gzip"
        case .extraBytes:
            fields[.contentLength] = nil
            fields[.transferEncoding] = "chunked"
            sent = range.lowerBound..<range.upperBound + 10
        default: break
        }
        return ScriptedResponse(status: 206, fields: fields, steps: steps(sent))
    }

    private func steps(_ range: Range<Int>) -> [ScriptedResponse.Step] {
        let end = min(range.upperBound, cutAfter.map { range.lowerBound + $0 } ?? .max)
        var steps: [ScriptedResponse.Step] = []
        var start = range.lowerBound
        while start < end {
            let next = min(end, start + chunkSize)
            steps.append(.bytes(Self.bytes(version: version, range: start..<next)))
            start = next
        }
        if end < range.upperBound {
            steps.append(.fail(TransportError(.closedEarly, "scripted")))
        }
        return steps
    }
}
