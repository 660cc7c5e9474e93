import HTTPCaching
import HTTPTypes
public import TieredCache

/// A model of an origin with one representation, which answers by RFC 9110 or lies in one way.
public struct ScriptedOriginModel: Sendable {
    /// One way to break the rules; named for what the answer to a range request does.
    public enum Lie: String, CaseIterable, Sendable {
        /// None: the rules are kept.
        case none
        /// Answers 200 with everything, as it may.
        case ignoresRanges
        /// Answers a request without `Range` with a 206.
        case unsolicitedPart
        /// Sends less of the range than was asked for, as it may.
        case subset
        /// Does not say the complete length, as it may.
        case starLength
        /// Starts somewhere else, and says so.
        case shiftedRange
        /// Names another complete length.
        case otherLength
        /// Names another entity tag.
        case otherTag
        /// Names no entity tag in a 206.
        case noTag
        /// Sends a 206 without `Content-Range`.
        case noContentRange
        /// Sends a `Content-Length` that disagrees with the range.
        case otherPartLength
        /// Sends a multipart body for one range.
        case multipart
        /// Sends a part of a coded representation.
        case codedPart
        /// Answers 416 for bytes that exist.
        case unsatisfied
        /// Sends more bytes than the range has, in a body without length.
        case extraBytes
    }

    /// Which representation is current; bytes and validators follow from it.
    public var version: UInt8
    /// Its length.
    public var length: Int
    /// Whether entity tags are strong, weak or missing.
    public var tagPrefix: String?
    /// The present lie.
    public var lie: Lie
    /// The body bytes sent per chunk.
    public var chunkSize: Int
    /// The body is cut after so many bytes.
    public var cutAfter: Int?

    /// Creates an origin that keeps the rules.
    ///
    /// - Parameters:
    ///   - length: The length of its representation.
    ///   - version: Which representation it begins with.
    public init(length: Int, version: UInt8 = 1) {
        self.version = version
        self.length = length
        tagPrefix = ""
        lie = .none
        chunkSize = 1000
    }

    /// The bytes of a representation: every offset and version has its own pattern.
    public static func bytes(version: UInt8, range: Range<Int>) -> [UInt8] {
        range.map { UInt8(truncatingIfNeeded: ($0 &* 31) ^ ($0 >> 8) &+ Int(version) &* 101) }
    }

    /// The entity tag as it is sent, or nil.
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
