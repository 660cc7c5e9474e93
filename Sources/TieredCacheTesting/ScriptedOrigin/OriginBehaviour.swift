public import HTTPTypes

/// How one answer of a ``ScriptedOrigin`` deviates from a faithful one.
///
/// The parts combine: a delayed answer can be throttled, lie about its length and be cut. Offsets
/// count the body bytes of the one response, not of the representation.
public struct OriginBehaviour: Sendable {
    /// How a connection ends before its time.
    public enum Cut: Hashable, Sendable {
        /// A regular close (FIN).
        case finish
        /// A reset (RST), sent once the peer's kernel has taken what was written before.
        case reset
    }

    /// What the answer is.
    public enum Answer: Hashable, Sendable {
        /// The resource, by the rules of RFC 9110.
        case resource
        /// A status with a small body; the resource's own fields are left out.
        case status(Int, body: [UInt8])
        /// These bytes instead of HTTP; then the connection is closed.
        case raw([UInt8])
        /// Nothing: the connection ends after the request has been read.
        case none(Cut)
    }

    /// What happens when the body has reached a certain byte.
    public enum Interruption: Sendable {
        /// The body goes on after this time.
        case pause(Duration)
        /// The body goes on when the gate opens.
        case wait(OriginGate)
        /// The body never goes on; the connection stays open.
        case stall
        /// The connection ends.
        case cut(Cut)
        /// The resource gets its next version; this response goes on with the bytes it began with.
        case changeVersion
    }

    /// What the answer is.
    public var answer: Answer
    /// Time between the request and the head.
    public var delay: Duration
    /// What must open before the head is written.
    public var gate: OriginGate?
    /// At most this many body bytes per second, nil for no limit.
    public var bytesPerSecond: Int?
    /// Interruptions by the number of body bytes written before.
    public var interruptions: [(offset: Int64, interruption: Interruption)]
    /// Answers as if there had been no `Range` field.
    public var ignoresRange: Bool
    /// Answers as if there had been no conditional field.
    public var ignoresConditions: Bool
    /// The body is gzip-coded and says so, whatever the request accepts; at most 16 MiB.
    public var isGzipCoded: Bool
    /// Statuses of interim responses (1xx) before the final head.
    public var interimStatuses: [Int]
    /// Fields that replace or join those of the answer.
    ///
    /// This is how the origin lies about `Content-Length`, `Content-Range`, `ETag`; the body's
    /// bytes stay what they are.
    public var overrides: HTTPFields
    /// Fields that are left out.
    public var omissions: Set<HTTPField.Name>
    /// Lines put into the head as they are, control characters included.
    public var rawFieldLines: [String]
    /// Closes the connection after the answer, and says so.
    public var closesConnection: Bool

    /// A faithful answer.
    public init() {
        answer = .resource
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
    /// Ranges are ignored for this answer.
    public static let ignoringRange = faithful.with { $0.ignoresRange = true }
    /// A gzip-coded body that nobody asked for.
    public static let gzipCoded = faithful.with { $0.isGzipCoded = true }

    /// A status with an optional `Retry-After`.
    ///
    /// - Parameters:
    ///   - status: the status code.
    ///   - retryAfter: the value of `Retry-After`, nil for none.
    /// - Returns: the behaviour.
    public static func status(_ status: Int, retryAfter: String? = nil) -> OriginBehaviour {
        faithful.with {
            $0.answer = .status(status, body: Array("status \(status)\n".utf8))
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
            $0.answer = .status(status, body: [])
            $0.overrides[.location] = location
        }
    }

    /// Ends the connection when so many body bytes of the response are out.
    public static func cut(after bytes: Int64, _ cut: Cut = .reset) -> OriginBehaviour {
        faithful.with { $0.interruptions = [(bytes, .cut(cut))] }
    }

    /// Goes silent, the connection open, when so many body bytes of the response are out.
    public static func stall(after bytes: Int64) -> OriginBehaviour {
        faithful.with { $0.interruptions = [(bytes, .stall)] }
    }

    /// Waits for `gate` when so many body bytes of the response are out.
    public static func wait(for gate: OriginGate, after bytes: Int64) -> OriginBehaviour {
        faithful.with { $0.interruptions = [(bytes, .wait(gate))] }
    }

    /// Makes the next version when so many body bytes of the response are out.
    public static func changeVersion(after bytes: Int64) -> OriginBehaviour {
        faithful.with { $0.interruptions = [(bytes, .changeVersion)] }
    }

    /// Writes at most so many body bytes per second.
    public static func throttled(bytesPerSecond: Int) -> OriginBehaviour {
        faithful.with { $0.bytesPerSecond = bytesPerSecond }
    }

    /// Replaces fields of a faithful answer.
    public static func lying(_ fields: HTTPFields) -> OriginBehaviour {
        faithful.with { $0.overrides = fields }
    }

    /// Sends these bytes instead of HTTP.
    public static func raw(_ text: String) -> OriginBehaviour {
        faithful.with { $0.answer = .raw(Array(text.utf8)) }
    }

    /// Ends the connection without an answer.
    public static func dropped(_ cut: Cut = .reset) -> OriginBehaviour {
        faithful.with { $0.answer = .none(cut) }
    }
}
