/// The age of a response (RFC 9111 §4.2.3).
///
/// | step | formula |
/// | --- | --- |
/// | apparent age | max(0, response time − `Date`) |
/// | corrected age value | `Age` + (response time − request time) |
/// | corrected initial age | the larger of the two |
/// | current age | corrected initial age + (now − response time) |
///
/// A clock that is set back never makes a response younger than it was on arrival.
public enum CurrentAge {
    /// Parses `Age` (RFC 9111 §5.1): the first element of a list counts; nil if it is no number.
    public static func parse(_ fieldValue: some StringProtocol) -> Duration? {
        var scanner = FieldScanner(fieldValue)
        let first = scanner.take { $0 != UInt8(ascii: ",") }
        let text = String(decoding: first, as: UTF8.self).trimmingWhitespace
        return DeltaSeconds.parse(text).map { .seconds($0) }
    }

    /// The corrected initial age.
    ///
    /// - Parameters:
    ///   - ageValue: the value of `Age`; nil counts as zero.
    ///   - date: the value of `Date`.
    ///   - requestTime: when the request was sent.
    ///   - responseTime: when the response arrived.
    /// - Returns: the age on arrival, never negative.
    public static func initial(
        ageValue: Duration?,
        date: WallTime,
        requestTime: WallTime,
        responseTime: WallTime
    ) -> Duration {
        // Negative where our clock is behind the origin's.
        let apparentAge = max(.zero, date.duration(to: responseTime))
        let responseDelay = max(.zero, requestTime.duration(to: responseTime))
        return max(apparentAge, (ageValue ?? .zero) + responseDelay)
    }

    /// The current age of a response at `now`.
    public static func of(_ response: ResponseFacts, at now: WallTime) -> Duration {
        let residentTime = max(.zero, response.responseTime.duration(to: now))
        return response.correctedInitialAge + residentTime
    }
}
