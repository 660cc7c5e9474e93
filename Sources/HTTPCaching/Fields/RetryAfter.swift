public import HTTPTypes

/// Parses `Retry-After`: how long a client should wait (RFC 9110 §10.2.3).
public enum RetryAfter {
    /// Reads a number of seconds or a date.
    ///
    /// - Parameters:
    ///   - fieldValue: the value of `Retry-After`.
    ///   - now: when the response arrived; a date is converted to a delay from it, and one in the
    ///     past to zero.
    ///   - maximum: the longest delay to return; an origin may ask for centuries.
    /// - Returns: the delay from `now`; nil if the value is malformed.
    public static func delay(
        _ fieldValue: some StringProtocol,
        now: WallTime,
        maximum: Duration
    ) -> Duration? {
        let text = fieldValue.trimmingWhitespace
        var scanner = FieldScanner(text)
        if let seconds = scanner.saturatingDigits() {
            return scanner.isAtEnd ? min(.seconds(seconds), maximum) : nil
        }
        guard let date = HTTPDate.parse(text, now: now) else { return nil }
        return min(max(now.duration(to: date), .zero), maximum)
    }

    /// Reads the field of a response; nil if there is none or it is malformed.
    ///
    /// - Parameters:
    ///   - fields: the response's header fields.
    ///   - now: when the response arrived.
    ///   - maximum: the longest delay to return.
    /// - Returns: the delay from `now`.
    public static func delay(
        in fields: HTTPFields,
        now: WallTime,
        maximum: Duration
    ) -> Duration? {
        fields[.retryAfter].flatMap { delay($0, now: now, maximum: maximum) }
    }
}
