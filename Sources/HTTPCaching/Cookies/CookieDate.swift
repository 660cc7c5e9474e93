extension HTTPDate {
    /// Reads the date of a cookie, whose parts come in any order, with any delimiters (RFC 6265
    /// §5.1.1).
    static func parse(cookieDate text: String) -> WallTime? {
        var (second, day, month, year): (Int?, Int?, Int?, Int?)
        for token in text.utf8.split(whereSeparator: isDelimiter) {
            if second == nil, let found = secondOfDay(token) {
                second = found
            } else if day == nil, let found = number(token, digits: 1...2) {
                day = found
            } else if month == nil, let found = self.month(token) {
                month = found
            } else if year == nil, let found = number(token, digits: 2...4) {
                year = found < 70 ? found + 2000 : found < 100 ? found + 1900 : found
            }
        }
        guard let second, let day, let month, let year, year >= 1601 else { return nil }
        let date = CivilDate(year: year, month: month, day: day)
        guard date.isValid else { return nil }
        return WallTime(seconds: Int64(date.dayNumber) * 86_400 + Int64(second))
    }

    private static func isDelimiter(_ byte: UInt8) -> Bool {
        switch byte {
        case 0x09, 0x20...0x2F, 0x3B...0x40, 0x5B...0x60, 0x7B...0x7E: true
        default: false
        }
    }

    private static func secondOfDay(_ token: Substring.UTF8View) -> Int? {
        let parts = token.split(separator: UInt8(ascii: ":"), omittingEmptySubsequences: false)
        guard parts.count == 3, let hour = number(parts[0], digits: 1...2), hour < 24,
            let minute = number(parts[1], digits: 1...2), minute < 60,
            let second = number(parts[2], digits: 1...2), second < 60
        else { return nil }
        return hour * 3600 + minute * 60 + second
    }

    /// The number with which a token begins, if it has so many digits.
    private static func number(_ token: Substring.UTF8View, digits: ClosedRange<Int>) -> Int? {
        let found = token.prefix(while: \.isDigit)
        return digits.contains(found.count) ? Int(String(decoding: found, as: UTF8.self)) : nil
    }

    private static func month(_ token: Substring.UTF8View) -> Int? {
        let name = token.prefix(3).map(\.lowercasedASCII)
        return monthNames.firstIndex { $0.utf8.elementsEqual(name) }.map { $0 + 1 }
    }
}
