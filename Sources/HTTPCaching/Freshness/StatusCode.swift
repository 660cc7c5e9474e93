/// What status codes mean to a cache (RFC 9110 §15).
public enum StatusCode {
    /// Whether a response may be given a heuristic lifetime (RFC 9110 §15.1).
    public static func isHeuristicallyCacheable(_ status: Int) -> Bool {
        switch status {
        case 200, 203, 204, 206, 300, 301, 308, 404, 405, 410, 414, 501: true
        default: false
        }
    }

    /// Whether the caching rules of the code are known, as `must-understand` demands
    /// (RFC 9111 §5.2.2.3).
    public static func isUnderstood(_ status: Int) -> Bool {
        switch status {
        case 200...206, 300...303, 305, 307, 308, 400...417, 421, 422, 426, 428, 429, 431, 451,
            500...505, 511:
            true
        default: false
        }
    }

    /// Whether an error says something about the very request that it answers, and nothing about
    /// what another request for the same target would get.
    ///
    /// | status | caused by |
    /// | --- | --- |
    /// | 412, 416, 417 | a condition, a range, an expectation (RFC 9110 §13.1, §14.2, §10.1.1) |
    /// | 408, 411, 413, 415, 421, 425 | slowness, framing, content, the connection, early data |
    /// | 428, 429, 431 | RFC 6585 forbids to store them: no condition, too many, too large |
    ///
    /// 414 is about the target, which is the key, and 400 may be about anything: the origin that
    /// gives them a lifetime knows.
    public static func isCausedByRequest(_ status: Int) -> Bool {
        switch status {
        case 408, 411, 412, 413, 415, 416, 417, 421, 425, 428, 429, 431: true
        default: false
        }
    }

    /// Whether the same request may be answered otherwise within moments, and is sent again (row
    /// 22).
    ///
    /// 522 and 524 are what gateways answer for an origin that does not. Other errors of a server,
    /// such as 501 and 505, are its answer for now.
    package static func isTransient(_ status: Int) -> Bool {
        switch status {
        case 408, 425, 429, 500, 502, 503, 504, 522, 524: true
        default: false
        }
    }

    /// Whether the same request may be answered otherwise later, be it in hours: any error of a
    /// server may be mended there.
    package static func mayPass(_ status: Int) -> Bool {
        status >= 500 || isTransient(status)
    }

    /// Whether an answer to validation counts as an error behind which a stale response may be
    /// served (RFC 5861 §4).
    public static func isStaleIfErrorStatus(_ status: Int) -> Bool {
        switch status {
        case 500, 502, 503, 504: true
        default: false
        }
    }
}
