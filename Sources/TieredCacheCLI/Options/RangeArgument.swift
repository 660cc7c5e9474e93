import ArgumentParser

/// The argument of `--range`: `A-B` with both ends included, `A-` to the end, `-N` for the last N
/// bytes.
enum RangeArgument: ExpressibleByArgument, Equatable {
    /// From the first number to the second, included; the second may lie beyond the end.
    case bounded(Int64, Int64)
    /// From the number to the end.
    case from(Int64)
    /// The last bytes, by their number.
    case last(Int64)

    init?(argument: String) {
        let parts = argument.split(separator: "-", omittingEmptySubsequences: false)
        guard parts.count == 2 else { return nil }
        switch (Self.number(parts[0]), Self.number(parts[1])) {
        case (let first?, let last?) where first <= last:
            self = .bounded(first, last)
        case (let first?, nil) where parts[1].isEmpty:
            self = .from(first)
        case (nil, let count?) where parts[0].isEmpty && count > 0:
            self = .last(count)
        default:
            return nil
        }
    }

    private static func number(_ text: Substring) -> Int64? {
        guard text.utf8.allSatisfy({ (48...57).contains($0) }) else { return nil }
        return Int64(text)
    }
}
