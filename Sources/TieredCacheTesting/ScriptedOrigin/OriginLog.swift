public import HTTPTypes
public import TieredCache

/// One request to a ``ScriptedOrigin`` and its outcome.
public struct OriginExchange: Sendable {
    /// How far the response has come.
    public enum Outcome: Hashable, Sendable {
        /// The response is still being written, or stalls.
        case open
        /// The response is written completely.
        case complete
        /// The script ended the response early.
        case cut
        /// The client disconnected, or the origin was stopped.
        case disconnected
    }

    /// The order of arrival, from 0, over all paths.
    public let number: Int
    /// The number of the accepted connection, from 0; equal numbers show a persistent connection.
    public let connection: Int
    /// The method as sent.
    public let method: String
    /// The request target as sent, query included.
    public let target: String
    /// The request's fields, `Host` included.
    public let fields: HTTPFields
    /// The first 64 KiB of the request's body.
    public internal(set) var body: [UInt8]
    /// The final status; nil until the head is about to be written, and if none is.
    public internal(set) var status: Int?
    /// The body bytes that were passed to the kernel or are about to be, without chunk framing.
    ///
    /// Includes all bytes that the client can have, and at most one piece of 256 KiB more. A piece
    /// that cannot be written is not counted.
    public internal(set) var bodyBytesWritten: Int64
    /// When the request's head was read.
    public let started: MonotonicTime
    /// When the response ended; nil while it is open.
    public internal(set) var ended: MonotonicTime?
    /// How far the response has come.
    public internal(set) var outcome: Outcome

    /// The target without its query.
    public var path: String { OriginLog.path(of: target) }
}

/// The requests to a ``ScriptedOrigin`` and their responses, at one moment.
public struct OriginLog: Sendable {
    /// The requests in the order of arrival.
    public internal(set) var exchanges: [OriginExchange] = []
    /// The number of connections accepted.
    public internal(set) var acceptedConnections = 0
    /// The number of connections now open.
    public internal(set) var openConnections = 0
    /// The number of responses now open, from the request's head to the response's last byte.
    public internal(set) var openResponses = 0
    /// The most responses that were open at the same time.
    public internal(set) var openResponsesHighWaterMark = 0

    /// The exchanges of one path, in the order of arrival.
    public func exchanges(for path: String) -> [OriginExchange] {
        exchanges.filter { $0.path == path }
    }

    /// ``OriginExchange/bodyBytesWritten`` for one path, over all its responses.
    public func bodyBytesWritten(for path: String) -> Int64 {
        exchanges(for: path).reduce(0) { $0 + $1.bodyBytesWritten }
    }

    /// ``OriginExchange/bodyBytesWritten`` over all responses.
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

    mutating func end(_ number: Int, with outcome: OriginExchange.Outcome, at now: MonotonicTime) {
        guard exchanges.indices.contains(number), exchanges[number].outcome == .open else { return }
        exchanges[number].outcome = outcome
        exchanges[number].ended = now
        openResponses -= 1
    }
}
