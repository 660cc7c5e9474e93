/// How a cache handled a request, in the words of RFC 9211.
public struct CacheStatus: Hashable, Sendable, CustomStringConvertible {
    /// Why a request went on to the origin (RFC 9211 §2.2).
    public enum ForwardReason: String, Hashable, Sendable {
        /// The cache was told not to handle the request.
        case bypass
        /// The method demands it.
        case method
        /// Nothing was held for the URI.
        case uriMiss = "uri-miss"
        /// Something was stored, but other request fields had selected it.
        case varyMiss = "vary-miss"
        /// Nothing usable was stored, for one of the two reasons.
        case miss
        /// What was stored was fresh, but the request wanted something newer.
        case request
        /// What was stored was stale.
        case stale
        /// Only a part of what was asked for was stored.
        case partial
    }

    /// The name of the cache, a token.
    public var cacheName = "TieredCache"
    /// Why the request was forwarded; nil for a hit.
    public var forwardReason: ForwardReason?
    /// The status that the origin answered with, where it is not the one delivered: 304.
    public var forwardStatus: Int?
    /// How many seconds the response stays fresh; negative when stale (§2.4).
    public var timeToLive: Int64?
    /// Whether the origin's answer was stored (§2.5).
    public var isStored = false
    /// Whether the request shared another one's forward request (§2.6).
    public var isCollapsed = false
    /// Anything more, for people, such as the tier (§2.8).
    public var detail: String?

    /// Whether the response came from the cache without asking the origin (§2.1).
    public var isHit: Bool { forwardReason == nil }

    /// A hit.
    ///
    /// - Parameters:
    ///   - timeToLive: how long the response stays fresh; rounded down to seconds.
    ///   - detail: anything more.
    /// - Returns: the status.
    public static func hit(timeToLive: Duration? = nil, detail: String? = nil) -> CacheStatus {
        var status = CacheStatus()
        status.timeToLive = timeToLive.map(wholeSeconds)
        status.detail = detail
        return status
    }

    /// A request that went on to the origin.
    ///
    /// - Parameters:
    ///   - reason: why.
    ///   - status: the status that the origin answered with.
    ///   - isStored: whether its answer was stored.
    ///   - isCollapsed: whether the request shared another one's forward request.
    ///   - timeToLive: how long the response stays fresh; rounded down to seconds.
    ///   - detail: anything more.
    /// - Returns: the status.
    public static func forwarded(
        _ reason: ForwardReason,
        status: Int? = nil,
        isStored: Bool = false,
        isCollapsed: Bool = false,
        timeToLive: Duration? = nil,
        detail: String? = nil
    ) -> CacheStatus {
        var result = CacheStatus()
        result.forwardReason = reason
        result.forwardStatus = status
        result.isStored = isStored
        result.isCollapsed = isCollapsed
        result.timeToLive = timeToLive.map(wholeSeconds)
        result.detail = detail
        return result
    }

    /// The value of `Cache-Status`, such as `MediaCache; hit; ttl=376; detail=memory`.
    ///
    /// The key is left out: it may hold a signature.
    public var fieldValue: String {
        // Not by the serializer of structured fields: each hit of a proxy has this field, and a
        // value takes that 2.7 µs instead of 0.3 µs to 0.7 µs.
        var value = cacheName
        if let forwardReason {
            value += "; fwd=\(forwardReason.rawValue)"
        } else {
            value += "; hit"
        }
        value += forwardStatus.map { "; fwd-status=\($0)" } ?? ""
        value += timeToLive.map { "; ttl=\($0)" } ?? ""
        value += isStored ? "; stored" : ""
        value += isCollapsed ? "; collapsed" : ""
        value += detail.map { "; detail=\(Self.structured($0))" } ?? ""
        return value
    }

    /// The same as ``fieldValue``.
    public var description: String { fieldValue }

    private static func wholeSeconds(_ duration: Duration) -> Int64 {
        let (seconds, attoseconds) = duration.components
        return attoseconds < 0 ? seconds - 1 : seconds
    }

    /// A token where the text is one, else a string (RFC 8941 §3.3.3, §3.3.4); what a string
    /// cannot hold becomes `?`.
    private static func structured(_ text: String) -> String {
        if let first = text.utf8.first, first.isLetter,
            text.utf8.allSatisfy({ $0.isTokenCharacter || $0 == UInt8(ascii: ":") })
        {
            return text
        }
        var content = ""
        for scalar in text.unicodeScalars {
            switch scalar {
            case "\"", "\\": content += "\\\(scalar)"
            case " "..."~": content.unicodeScalars.append(scalar)
            default: content += "?"
            }
        }
        return "\"\(content)\""
    }
}
