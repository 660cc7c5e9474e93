/// The three formats of a date in HTTP, and the one that is sent (RFC 9110 §5.6.7).
///
/// | format | example |
/// | --- | --- |
/// | IMF-fixdate, sent and accepted | `Sun, 06 Nov 1994 08:49:37 GMT` |
/// | RFC 850, accepted | `Sunday, 06-Nov-94 08:49:37 GMT` |
/// | asctime, accepted | `Sun Nov  6 08:49:37 1994` |
///
/// Case is ignored, as RFC 9111 §4.2 requires of caches. Everything else must be exact: a cache
/// that guesses the meaning of `Thu, 18 Aug 50 2:01:18 UTC` may use a response that has expired,
/// whereas an invalid date only causes a validation. The name of the day must be valid but need not
/// agree with the date.
public enum HTTPDate {
    /// Reads a date in any of the three formats.
    ///
    /// - Parameters:
    ///   - text: the field value; spaces around it are ignored.
    ///   - now: the present, which determines the century of a two-digit year: a year that appears
    ///     to be more than 50 years ahead is the latest one in the past with these digits.
    /// - Returns: the instant, or nil if the text is no valid date.
    public static func parse(_ text: some StringProtocol, now: WallTime) -> WallTime? {
        var scanner = FieldScanner(text.trimmingWhitespace)
        let dayName = scanner.take(while: \.isLetter).map(\.lowercasedASCII)
        if dayName.count > 3, isDayName(dayName, of: longDayNames) {
            return rfc850(&scanner, now: now)
        }
        guard isDayName(dayName, of: dayNames) else { return nil }
        return scanner.next == UInt8(ascii: ",") ? fixdate(&scanner) : asctime(&scanner)
    }

    /// Writes an instant as IMF-fixdate; fractions of a second are cut off.
    public static func format(_ time: WallTime) -> String {
        let seconds = time.seconds
        let day = Int(floorDivide(seconds, by: 86_400))
        let second = Int(seconds - Int64(day) * 86_400)
        let date = CivilDate(dayNumber: day)
        // Day 0, 1970-01-01, was a Thursday.
        let dayName = capitalised(dayNames[((day + 4) % 7 + 7) % 7])
        let clock = [second / 3600, second / 60 % 60, second % 60].map(twoDigits)
        let month = capitalised(monthNames[date.month - 1])
        return "\(dayName), \(twoDigits(date.day)) \(month) \(date.year) "
            + "\(clock.joined(separator: ":")) GMT"
    }

    /// `, 06 Nov 1994 08:49:37 GMT`.
    private static func fixdate(_ scanner: inout FieldScanner) -> WallTime? {
        guard scanner.skip(","), scanner.skip(" "), let day = scanner.digits(exactly: 2),
            scanner.skip(" "), let month = month(&scanner), scanner.skip(" "),
            let year = scanner.digits(exactly: 4), scanner.skip(" "),
            let second = timeOfDay(&scanner), scanner.skip(ignoringCase: " gmt"), scanner.isAtEnd
        else { return nil }
        return time(on: CivilDate(year: year, month: month, day: day), second: second)
    }

    /// `, 06-Nov-94 08:49:37 GMT`.
    private static func rfc850(_ scanner: inout FieldScanner, now: WallTime) -> WallTime? {
        guard scanner.skip(","), scanner.skip(" "), let day = scanner.digits(exactly: 2),
            scanner.skip("-"), let month = month(&scanner), scanner.skip("-"),
            let digits = scanner.digits(exactly: 2), scanner.skip(" "),
            let second = timeOfDay(&scanner), scanner.skip(ignoringCase: " gmt"), scanner.isAtEnd
        else { return nil }
        let present = CivilDate(dayNumber: Int(floorDivide(now.seconds, by: 86_400))).year
        let year = present - present % 100 + 100 + digits
        // The latest year with these digits that is not more than 50 years ahead.
        let candidates = [year, year - 100, year - 200]
        guard let year = candidates.first(where: { $0 <= present + 50 }) else { return nil }
        return time(on: CivilDate(year: year, month: month, day: day), second: second)
    }

    /// ` Nov  6 08:49:37 1994`.
    private static func asctime(_ scanner: inout FieldScanner) -> WallTime? {
        guard scanner.skip(" "), let month = month(&scanner), scanner.skip(" "),
            let day = scanner.digits(exactly: 2) ?? paddedDigit(&scanner), scanner.skip(" "),
            let second = timeOfDay(&scanner), scanner.skip(" "),
            let year = scanner.digits(exactly: 4), scanner.isAtEnd
        else { return nil }
        return time(on: CivilDate(year: year, month: month, day: day), second: second)
    }

    private static func paddedDigit(_ scanner: inout FieldScanner) -> Int? {
        scanner.skip(" ") ? scanner.digits(exactly: 1) : nil
    }

    /// `08:49:37` as seconds of the day; a leap second is 60.
    private static func timeOfDay(_ scanner: inout FieldScanner) -> Int? {
        guard let hour = scanner.digits(exactly: 2), hour < 24, scanner.skip(":"),
            let minute = scanner.digits(exactly: 2), minute < 60, scanner.skip(":"),
            let second = scanner.digits(exactly: 2), second <= 60
        else { return nil }
        return hour * 3600 + minute * 60 + second
    }

    private static func month(_ scanner: inout FieldScanner) -> Int? {
        let name = scanner.take(while: \.isLetter).map(\.lowercasedASCII)
        return monthNames.firstIndex { $0.utf8.elementsEqual(name) }.map { $0 + 1 }
    }

    private static func time(on date: CivilDate, second: Int) -> WallTime? {
        guard date.isValid else { return nil }
        return WallTime(seconds: Int64(date.dayNumber) * 86_400 + Int64(second))
    }

    private static func isDayName(_ name: [UInt8], of names: [String]) -> Bool {
        names.contains { $0.utf8.elementsEqual(name) }
    }

    private static func twoDigits(_ number: Int) -> String {
        number < 10 ? "0\(number)" : "\(number)"
    }

    private static func capitalised(_ name: String) -> String {
        name.prefix(1).uppercased() + name.dropFirst()
    }

    private static func floorDivide(_ number: Int64, by divisor: Int64) -> Int64 {
        let quotient = number / divisor
        return number % divisor < 0 ? quotient - 1 : quotient
    }

    private static let dayNames = ["sun", "mon", "tue", "wed", "thu", "fri", "sat"]
    private static let longDayNames = [
        "sunday", "monday", "tuesday", "wednesday", "thursday", "friday", "saturday",
    ]
    static let monthNames = [
        "jan", "feb", "mar", "apr", "may", "jun", "jul", "aug", "sep", "oct", "nov", "dec",
    ]
}
