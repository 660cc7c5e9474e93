/// Identifies a download job; survives restarts, and is never reused.
public struct DownloadID: Hashable, Sendable, LosslessStringConvertible {
    /// The number that the text encodes.
    package let number: UInt64

    package init(number: UInt64) {
        self.number = number
    }

    /// A random number; 64 bits make a collision improbable.
    static func random() -> DownloadID {
        DownloadID(number: .random(in: 1 ... .max))
    }

    /// Parses a ``description``; nil for any other text.
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
