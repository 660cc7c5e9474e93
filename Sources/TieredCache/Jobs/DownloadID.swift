/// Names a download job; survives restarts, and is never given to another job.
public struct DownloadID: Hashable, Sendable, LosslessStringConvertible {
    /// The number behind the text.
    package let number: UInt64

    package init(number: UInt64) {
        self.number = number
    }

    /// A number that nobody has yet, as far as 64 random bits go.
    static func random() -> DownloadID {
        DownloadID(number: .random(in: 1 ... .max))
    }

    /// Reads what ``description`` wrote; nil for anything else.
    public init?(_ description: String) {
        guard description.utf8.count == 16,
            description.utf8.allSatisfy({ (48...57).contains($0) || (97...102).contains($0) }),
            let number = UInt64(description, radix: 16)
        else { return nil }
        self.number = number
    }

    /// Sixteen hexadecimal digits in lower case.
    public var description: String {
        let digits = String(number, radix: 16)
        return String(repeating: "0", count: 16 - digits.count) + digits
    }
}
