/// The address template of DASH segments (ISO/IEC 23009-1 §5.3.9.4.4).
///
/// `$RepresentationID$`, `$Bandwidth$`, `$Number$`, `$Time$`, each but the first with an optional
/// width as `$Number%05d$`; `$$` is a dollar sign.
struct DASHTemplate {
    /// The values of the identifiers.
    struct Values {
        var representation = ""
        var bandwidth = 0
        var number: Int64 = 0
        var time: Int64 = 0
    }

    private let text: String

    init(_ text: String) {
        self.text = text
    }

    /// The address; nil for an invalid template.
    func address(_ values: Values) -> String? {
        let parts = text.split(separator: "$", omittingEmptySubsequences: false)
        // Dollar signs come in pairs.
        guard parts.count % 2 == 1 else { return nil }
        var result = ""
        for (index, part) in parts.enumerated() {
            guard index % 2 == 1 else {
                result += part
                continue
            }
            guard let value = Self.value(of: part, in: values) else { return nil }
            result += value
        }
        return result
    }

    private static func value(of name: Substring, in values: Values) -> String? {
        let parts = name.split(separator: "%", maxSplits: 1, omittingEmptySubsequences: false)
        let width: Int
        if parts.count == 2 {
            // "05d"
            guard parts[1].hasPrefix("0"), parts[1].hasSuffix("d"),
                // A wider number would only be a longer address.
                let digits = Int(parts[1].dropLast()), digits <= 32
            else { return nil }
            width = digits
        } else {
            width = 1
        }
        switch parts[0] {
        case "": return parts.count == 1 ? "$" : nil
        case "RepresentationID": return parts.count == 1 ? values.representation : nil
        case "Bandwidth": return padded(Int64(values.bandwidth), to: width)
        case "Number": return padded(values.number, to: width)
        case "Time": return padded(values.time, to: width)
        default: return nil
        }
    }

    private static func padded(_ number: Int64, to width: Int) -> String {
        let digits = String(number)
        return String(repeating: "0", count: max(0, width - digits.count)) + digits
    }
}
