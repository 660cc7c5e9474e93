/// The meaning of status codes for a cache (RFC 9110 §15).
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

    /// Whether an error concerns only the request that it answers, and not other requests for the
    /// same target.
    ///
    /// | status | caused by |
    /// | --- | --- |
    /// | 412, 416, 417 | a condition, a range, an expectation (RFC 9110 §13.1, §14.2, §10.1.1) |
    /// | 408, 411, 413, 415, 421, 425 | slowness, framing, content, the connection, early data |
    /// | 428, 429, 431 | RFC 6585 forbids to store them: no condition, too many, too large |
    ///
    /// 414 concerns the target, which is the key, and 400 may concern anything: an explicit
    /// lifetime of the origin counts for them.
    public static func isCausedByRequest(_ status: Int) -> Bool {
        switch status {
        case 408, 411, 412, 413, 415, 416, 417, 421, 425, 428, 429, 431: true
        default: false
        }
    }

    /// Whether the same request may succeed within moments, so that it is retried (row 22).
    ///
    /// Gateways send 522 and 524 for an origin that does not respond. Other server errors, such as
    /// 501 and 505, are final for now.
    package static func isTransient(_ status: Int) -> Bool {
        switch status {
        case 408, 425, 429, 500, 502, 503, 504, 522, 524: true
        default: false
        }
    }

    /// Whether the same request may succeed later, possibly in hours, as after any server error.
    package static func mayPass(_ status: Int) -> Bool {
        status >= 500 || isTransient(status)
    }

    /// Whether a response to validation is an error for which a stale response may be served
    /// instead (RFC 5861 §4).
    public static func isStaleIfErrorStatus(_ status: Int) -> Bool {
        switch status {
        case 500, 502, 503, 504: true
        default: false
        }
    }
}
