extension WallTime {
    /// The instant in the format of RFC 3339, in UTC with milliseconds: `2026-11-21T08:43:38.123Z`.
    public var timestamp: String {
        let seconds = seconds
        let day = seconds >= 0 ? seconds / 86_400 : (seconds - 86_399) / 86_400
        let date = CivilDate(dayNumber: Int(day))
        let second = seconds - day * 86_400
        let rest = nanoseconds % 1_000_000_000
        let milliseconds = (rest < 0 ? rest + 1_000_000_000 : rest) / 1_000_000
        return "\(Self.text(Int64(date.year), width: 4))-\(Self.text(Int64(date.month), width: 2))-"
            + "\(Self.text(Int64(date.day), width: 2))T\(Self.text(second / 3600, width: 2)):"
            + "\(Self.text(second / 60 % 60, width: 2)):\(Self.text(second % 60, width: 2))."
            + "\(Self.text(milliseconds, width: 3))Z"
    }

    /// Parses the format of ``timestamp``; nil for anything else.
    public init?(timestamp text: some StringProtocol) {
        let bytes = Array(text.utf8)
        let frame = Array("____-__-__T__:__:__.___Z".utf8)
        guard bytes.count == frame.count else { return nil }
        for (byte, expected) in zip(bytes, frame) {
            let isDigit = (UInt8(ascii: "0")...UInt8(ascii: "9")).contains(byte)
            guard expected == UInt8(ascii: "_") ? isDigit : byte == expected else { return nil }
        }
        func number(_ range: Range<Int>) -> Int64 {
            bytes[range].reduce(0) { $0 * 10 + Int64($1 - UInt8(ascii: "0")) }
        }
        let date = CivilDate(
            year: Int(number(0..<4)),
            month: Int(number(5..<7)),
            day: Int(number(8..<10))
        )
        let (hour, minute, second) = (number(11..<13), number(14..<16), number(17..<19))
        guard date.isValid, hour < 24, minute < 60, second < 60 else { return nil }
        let seconds = Int64(date.dayNumber) * 86_400 + hour * 3600 + minute * 60 + second
        let start = WallTime(seconds: seconds)
        self = start.advanced(by: .milliseconds(number(20..<23)))
    }

    private static func text(_ number: Int64, width: Int) -> String {
        let digits = String(number)
        return String(repeating: "0", count: max(0, width - digits.count)) + digits
    }
}
