public import HTTPTypes
public import TieredCache

/// One request to a ``ScriptedOrigin`` and what became of it.
public struct OriginExchange: Sendable {
    /// How far the answer has come.
    public enum Outcome: Hashable, Sendable {
        /// The answer is still being written, or stalls.
        case open
        /// Written to its last byte.
        case complete
        /// Ended early by the script.
        case cut
        /// The client went away, or the origin was stopped.
        case disconnected
    }

    /// The order of arrival, from 0, over all paths.
    public let number: Int
    /// Which accepted connection it came on, from 0: equal numbers mean that it was kept alive.
    public let connection: Int
    /// The method as sent.
    public let method: String
    /// The request target as sent, query included.
    public let target: String
    /// The request's fields, `Host` included.
    public let fields: HTTPFields
    /// The request's body; what exceeds 64 KiB is dropped.
    public internal(set) var body: [UInt8]
    /// The final status, nil until the head is about to be written or if none is.
    public internal(set) var status: Int?
    /// The body bytes that were handed to the kernel or are about to be, without chunk framing.
    ///
    /// All that the client can have is counted, and at most one piece of 256 KiB more. A piece
    /// whose write fails is not.
    public internal(set) var bodyBytesWritten: Int64
    /// When the request's head was read.
    public let started: MonotonicTime
    /// When the answer ended, nil while it is open.
    public internal(set) var ended: MonotonicTime?
    /// How far the answer has come.
    public internal(set) var outcome: Outcome

    /// The target up to its query.
    public var path: String { OriginLog.path(of: target) }
}

/// Everything a ``ScriptedOrigin`` was asked and has answered, at one moment.
public struct OriginLog: Sendable {
    /// The requests in the order of arrival.
    public internal(set) var exchanges: [OriginExchange] = []
    /// The number of connections accepted.
    public internal(set) var acceptedConnections = 0
    /// The number of connections now open.
    public internal(set) var openConnections = 0
    /// The number of answers now open, from the request's head to the answer's last byte.
    public internal(set) var openResponses = 0
    /// The most answers that were open at the same time.
    public internal(set) var openResponsesHighWaterMark = 0

    /// The exchanges of one path, in the order of arrival.
    public func exchanges(for path: String) -> [OriginExchange] {
        exchanges.filter { $0.path == path }
    }

    /// ``OriginExchange/bodyBytesWritten`` for one path, over all its answers.
    public func bodyBytesWritten(for path: String) -> Int64 {
        exchanges(for: path).reduce(0) { $0 + $1.bodyBytesWritten }
    }

    /// ``OriginExchange/bodyBytesWritten`` over all answers.
    public var bodyBytesWritten: Int64 {
        exchanges.reduce(0) { $0 + $1.bodyBytesWritten }
    }

    static func path(of target: String) -> String {
        String(target.prefix { $0 != "?" })
    }

    mutating func begin(_ request: OriginRequest, connection: Int, at now: MonotonicTime) -> Int {
        let number = exchanges.count
        exchanges.append(
            OriginExchange(
                number: number,
                connection: connection,
                method: request.method,
                target: request.target,
                fields: request.fields,
                body: [],
                status: nil,
                bodyBytesWritten: 0,
                started: now,
                ended: nil,
                outcome: .open
            )
        )
        openResponses += 1
        openResponsesHighWaterMark = max(openResponsesHighWaterMark, openResponses)
        return number
    }

    mutating func end(_ number: Int, _ outcome: OriginExchange.Outcome, at now: MonotonicTime) {
        guard exchanges.indices.contains(number), exchanges[number].outcome == .open else { return }
        exchanges[number].outcome = outcome
        exchanges[number].ended = now
        openResponses -= 1
    }
}
