import ArgumentParser

/// A SIZE argument: `500000`, `64MiB`, `2GiB`; also `kB`, `MB` and the like in powers of ten.
struct ByteSize: ExpressibleByArgument, Hashable {
    let bytes: Int64

    init(_ bytes: Int64) {
        self.bytes = bytes
    }

    init?(argument: String) {
        let digits = argument.prefix { $0.isASCII && ($0.isNumber || $0 == ".") }
        let unit = argument.dropFirst(digits.count).lowercased()
        guard let factor = Self.factors[unit], let bytes = Self.bytes(digits, factor) else {
            return nil
        }
        self.bytes = bytes
    }

    private static let factors: [String: Int64] = [
        "": 1, "b": 1,
        "k": 1 << 10, "kib": 1 << 10, "kb": 1_000,
        "m": 1 << 20, "mib": 1 << 20, "mb": 1_000_000,
        "g": 1 << 30, "gib": 1 << 30, "gb": 1_000_000_000,
        "t": 1 << 40, "tib": 1 << 40, "tb": 1_000_000_000_000,
    ]

    /// Whole numbers are exact; a fraction such as `1.5` is rounded down to whole bytes.
    private static func bytes(_ digits: Substring, _ factor: Int64) -> Int64? {
        if let whole = Int64(digits) {
            let (product, overflow) = whole.multipliedReportingOverflow(by: factor)
            return overflow ? nil : product
        }
        guard factor > 1, let value = Double(digits), value * Double(factor) < 0x1p62 else {
            return nil
        }
        return Int64(value * Double(factor))
    }
}
