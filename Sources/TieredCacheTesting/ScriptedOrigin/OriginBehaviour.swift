public import HTTPTypes

/// The deviations of one response of a ``ScriptedOrigin`` from a correct one.
///
/// Deviations combine: a delayed response can be throttled, have a wrong length and be cut off.
/// Offsets count the body bytes of the response, not of the representation.
public struct OriginBehaviour: Sendable {
    /// How a connection ends prematurely.
    public enum Cut: Hashable, Sendable {
        /// A regular close (FIN).
        case finish
        /// A reset (RST), sent when the peer's kernel has received all previous bytes.
        case reset
    }

    /// What the origin responds.
    public enum Response: Hashable, Sendable {
        /// The resource, by the rules of RFC 9110.
        case resource
        /// A status with a small body, without the fields of the resource.
        case status(Int, body: [UInt8])
        /// These bytes instead of HTTP; then the connection is closed.
        case raw([UInt8])
        /// Nothing: the connection ends after the request has been read.
        case none(Cut)
    }

    /// An event at an offset of the body.
    public enum Interruption: Sendable {
        /// The body continues after this time.
        case pause(Duration)
        /// The body continues when the gate opens.
        case wait(OriginGate)
        /// The body never continues; the connection stays open.
        case stall
        /// The connection ends.
        case cut(Cut)
        /// The resource gets its next version; this response continues with its own bytes.
        case changeVersion
    }

    /// What the origin responds.
    public var response: Response
    /// The time between the request and the head.
    public var delay: Duration
    /// The gate that must open before the head is written.
    public var gate: OriginGate?
    /// The most body bytes per second; nil for no limit.
    public var bytesPerSecond: Int?
    /// The interruptions, by the number of body bytes written before.
    public var interruptions: [(offset: Int64, interruption: Interruption)]
    /// Whether `Range` is ignored.
    public var ignoresRange: Bool
    /// Whether conditional fields are ignored.
    public var ignoresConditions: Bool
    /// Whether the body is gzip-coded, whatever the request accepts; for at most 16 MiB.
    public var isGzipCoded: Bool
    /// The statuses of interim responses (1xx) before the final head.
    public var interimStatuses: [Int]
    /// Fields that replace or extend those of the response.
    ///
    /// For wrong values of `Content-Length`, `Content-Range` or `ETag`; the bytes of the body do
    /// not change.
    public var overrides: HTTPFields
    /// Fields that are omitted.
    public var omissions: Set<HTTPField.Name>
    /// Lines added to the head unchanged, including control characters.
    public var rawFieldLines: [String]
    /// Whether the connection is closed after the response, with `Connection: close`.
    public var closesConnection: Bool

    /// Creates the behaviour of a correct response.
    public init() {
        response = .resource
        delay = .zero
        gate = nil
        bytesPerSecond = nil
        interruptions = []
        ignoresRange = false
        ignoresConditions = false
        isGzipCoded = false
        interimStatuses = []
        overrides = [:]
        omissions = []
        rawFieldLines = []
        closesConnection = false
    }

    /// This behaviour with changes.
    public func with(_ change: (inout OriginBehaviour) -> Void) -> OriginBehaviour {
        var copy = self
        change(&copy)
        return copy
    }
}

extension OriginBehaviour {
    /// The resource, by the rules of RFC 9110.
    public static let faithful = OriginBehaviour()
    /// Ranges are ignored for this response.
    public static let ignoringRange = faithful.with { $0.ignoresRange = true }
    /// An unsolicited gzip-coded body.
    public static let gzipCoded = faithful.with { $0.isGzipCoded = true }

    /// A status with an optional `Retry-After`.
    ///
    /// - Parameters:
    ///   - status: the status code.
    ///   - retryAfter: the value of `Retry-After`, nil for none.
    /// - Returns: the behaviour.
    public static func status(_ status: Int, retryAfter: String? = nil) -> OriginBehaviour {
        faithful.with {
            $0.response = .status(status, body: Array("status \(status)\n".utf8))
            if let retryAfter { $0.overrides[.retryAfter] = retryAfter }
        }
    }

    /// A redirect.
    ///
    /// - Parameters:
    ///   - location: the value of `Location`.
    ///   - status: 301, 302, 303, 307 or 308.
    /// - Returns: the behaviour.
    public static func redirect(to location: String, status: Int = 302) -> OriginBehaviour {
        faithful.with {
            $0.response = .status(status, body: [])
            $0.overrides[.location] = location
        }
    }

    /// Ends the connection when `bytes` of the body are written.
    public static func cut(after bytes: Int64, _ cut: Cut = .reset) -> OriginBehaviour {
        faithful.with { $0.interruptions = [(bytes, .cut(cut))] }
    }

    /// Stalls, with the connection open, when `bytes` of the body are written.
    public static func stall(after bytes: Int64) -> OriginBehaviour {
        faithful.with { $0.interruptions = [(bytes, .stall)] }
    }

    /// Waits for `gate` when `bytes` of the body are written.
    public static func wait(for gate: OriginGate, after bytes: Int64) -> OriginBehaviour {
        faithful.with { $0.interruptions = [(bytes, .wait(gate))] }
    }

    /// Changes the resource to its next version when `bytes` of the body are written.
    public static func changeVersion(after bytes: Int64) -> OriginBehaviour {
        faithful.with { $0.interruptions = [(bytes, .changeVersion)] }
    }

    /// Limits the rate of the body.
    public static func throttled(bytesPerSecond: Int) -> OriginBehaviour {
        faithful.with { $0.bytesPerSecond = bytesPerSecond }
    }

    /// Replaces fields of a correct response.
    public static func lying(_ fields: HTTPFields) -> OriginBehaviour {
        faithful.with { $0.overrides = fields }
    }

    /// Sends these bytes instead of HTTP.
    public static func raw(_ text: String) -> OriginBehaviour {
        faithful.with { $0.response = .raw(Array(text.utf8)) }
    }

    /// Ends the connection without a response.
    public static func dropped(_ cut: Cut = .reset) -> OriginBehaviour {
        faithful.with { $0.response = .none(cut) }
    }
}
